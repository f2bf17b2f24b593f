-- needs: common code for tasks that other tasks need, because they wait for them (see link.lua).

local needs = {}

-- The first argument is the key of the set of groups that tasks wait for.
local function group_is_awaited(key, group)
  if needs.groups_awaited == nil then needs.groups_awaited = redis.call('EXISTS', key) == 1 end
  return needs.groups_awaited and type(redis.pcall('ZSCORE', key, group)) == 'string'
end

-- Returns the reason why a task or its outputs cannot be removed, or nil. The last arguments are the number of
-- unfinished tasks that need it, and the number of its endings that the server has not handled.
function needs.refusal(id, group, dependents, endings)
  local n = number(dependents, 0) or 0
  if n > 0 then return string.format('!task %s: %.0f unfinished tasks need it (after)', id, n) end
  if (number(endings, 0) or 0) > 0 then
    return string.format('!task %s: the server has not handled its end yet', id)
  end
  if group ~= '' and group_is_awaited(endings_prefix .. 'awaited_groups', group) then
    return string.format('!task %s: unfinished tasks need its group (after_group)', id)
  end
end

-- Replaces the places of new tasks, such as '#2', by their ids. The first argument is the ids by place. The other
-- arguments are the indexes in ARGV of the first and the last property of a new task.
function needs.name_tasks(ids, first, last)
  for at = first, last, 2 do
    if ARGV[at] == 'after' or ARGV[at] == 'after_any' then
      ARGV[at + 1] = string.gsub(ARGV[at + 1], '#(%d+)', function(i) return ids[tonumber(i)] end)
    end
  end
end
