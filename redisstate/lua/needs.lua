-- needs: common code for tasks that other tasks need, because they wait for them (see link.lua).

local needs = {}

-- The first argument is the key of the set of groups that tasks wait for.
local function group_is_awaited(key, group)
  if needs.groups_awaited == nil then needs.groups_awaited = redis.call('EXISTS', key) == 1 end
  return needs.groups_awaited and type(redis.pcall('ZSCORE', key, group)) == 'string'
end

-- Reads what the tasks in the set `unlinked` wait for. Returns the names of these tasks and groups. If there are too
-- many names to read, the second result is the reason why nothing can be removed yet.
local MOST_READ, MOST_BYTES = 32, 16384
local NAMES = { 'state', 'place', 'after', 'after_any', 'after_group', 'after_group_any' }
local function read_unlinked(tasks)
  local unlinked = endings_prefix .. 'unlinked'
  local named = { tasks = {}, groups = {} }
  if redis.call('EXISTS', unlinked) == 0 then return named end
  local wrong, size = not_sorted(unlinked)
  if wrong then return named, 'redis: ' .. wrong.err end
  local bytes = 0
  for _, id in ipairs(size <= MOST_READ and redis.call('ZRANGE', unlinked, 0, -1) or {}) do
    local f = redis.pcall('HMGET', tasks .. id, unpack(NAMES))
    if f[1] == 'open' and f[2] == 'waiting' then
      local after = (f[3] or '') .. ',' .. (f[4] or '')
      bytes = bytes + #after
      if bytes > MOST_BYTES then break end
      for name in string.gmatch(after, '0*(%d+)') do named.tasks[name] = true end
      named.groups[f[5] or ''], named.groups[f[6] or ''] = true, true
    end
  end
  if size <= MOST_READ and bytes <= MOST_BYTES then return named end
  return named, 'the server has not looked up what new tasks wait for; try again, and start a server if none is running'
end

-- Returns the reason why a task or its outputs cannot be removed, or nil. The next arguments are the number of
-- unfinished tasks that need it, and the number of its endings that the server has not handled.
function needs.refusal(tasks, id, group, dependents, endings)
  if not needs.named then needs.named, needs.unknown = read_unlinked(tasks) end
  if needs.unknown then return string.format('&task %s: ', id) .. needs.unknown end
  local n = number(dependents, 0) or 0
  if n == 0 and needs.named.tasks[id] then n = 1 end
  if n > 0 then return string.format('!task %s: unfinished tasks need it (after)', id) end
  if (number(endings, 0) or 0) > 0 then
    return string.format('!task %s: the server has not handled its end yet', id)
  end
  if group ~= '' and (needs.named.groups[group] or group_is_awaited(endings_prefix .. 'awaited_groups', group)) then
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
