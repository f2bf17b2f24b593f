-- link: links tasks to their dependencies. The server calls it.
--
-- from-state and to-state: any, but the same; the server then settles the tasks that the script makes due
--
-- The script links a waiting task to each of its dependencies. Until it has linked them all, the task is in the set
-- `unlinked`. If the dependency is not finished, the script adds an entry to its list of dependents. An entry consists
-- of the id and the round of the waiting task, and of '?' if the task accepts any outcome. The dependency also counts
-- its unfinished dependents. It cannot be removed until they are finished.
--
-- KEYS: due, ended (the endings that the server must handle: see endings.lua), awaited_groups (the groups that tasks
-- wait for, with the number of their unfinished dependents), groups (the marks of groups), unlinked (the waiting tasks
-- that are not linked to all of their dependencies: see places.lua)
--
-- ARGV: the prefixes of the keys of tasks, of groups, and of the lists of dependents of tasks and of groups, the
-- outcome of a task that has succeeded, and the maximum number of dependents that the script updates; then
-- - the number of states in which a task is not finished, and these states
-- - the number of codes of these states, and these codes
-- - the number of codes of the states in which a task did not succeed and is not archived, and these codes
-- - the operations: each begins with its name
--
-- A dependency is a kind and a name. The kind is `task` or `group`, with '?' if the waiting task accepts any outcome.
-- The name is the task's id, or the name of the group.
--
-- Operations, with their arguments and the line of the answer:
-- - link: id, round, the number of dependencies that were linked before, '1' if the given dependencies are the last
--   ones of the task or '', the number of given dependencies, and these. If the task need not wait, it becomes due.
--   Answer: '+', '~' and a number if there was time only for this number of dependencies, or '-' if the task no longer
--   waits, or if another call has linked the dependencies.
-- - end: id, round, state, the reason why strict dependencies on the task are not met, or '' if it has succeeded, the
--   round in which the task waited for its own dependencies, the number of dependencies that were released before, and
--   the given dependencies as for link. A dependency is strict if it requires success.
--   Answer: '+' if the ending is handled, '~' and the number of given dependencies that it has released if a part of it
--   remains, or '-' if another call has released the dependencies.
-- - probe: a group. Answer: '+' if the group is complete, or '-'.
-- - complete: a group, the reason why strict dependencies on the group are not met, or '' if all tasks have succeeded,
--   and the number of tasks that did not succeed and are not archived.
--   Answer: '+' if all dependents of the group know its end, '~' if some remain, or '-' if the group is not complete,
--   or has another number of such tasks.
--
-- If the call takes too long, the script leaves out the last operations, but never the first. The answer then has fewer
-- lines. A repeated call changes nothing. It compares the numbers that the first call has written, and finds that the
-- entries are gone.

local due, ended, awaited, marks, unlinked = unpack(KEYS)
local tasks, groups, dependents, group_dependents, SUCCEEDED = unpack(ARGV, 1, 5)
local most = tonumber(ARGV[6])
cursor = 6

local unfinished, codes, unsuccessful = take_set(), take_list(1), take_list(1)

local wrong = not_sorted(due) or not_sorted(ended) or not_sorted(awaited) or not_sorted(unlinked)
if wrong then return wrong end

-- Reads the number of dependencies that earlier calls have handled, whether the given ones are the last, and these.
local function take_dependencies()
  local before, last, all = take(), take() == '1', {}
  for i = 1, tonumber(take()) do
    local kind, any = string.match(take(), '^(%a+)(%??)$')
    all[i] = { is_group = kind == 'group', any = any, name = take() }
  end
  return before, last, all
end

-- Returns the number in a property that this script writes. Returns 0 for any other text, as Go does.
local function count_of(s) return s and #s <= 9 and string.match(s, '^%d+$') and tonumber(s) or 0 end

-- Calls a function for the first elements of a list, until the time is over. Returns their number.
local function each_in_time(all, handle)
  for i, of in ipairs(all) do
    handle(of)
    if i % 32 == 0 and spent(2) then return i end
  end
  return #all
end

local function look_now(id) call('ZADD', due, now_text, id) end

local function is_complete(group)
  local mark, unreadable = mark_of(marks, group)
  return not unreadable and mark ~= '' and not not_in_group(groups, group) and count_in(groups .. group, codes) == 0
end

-- Adds an entry to a list of dependents. Returns the reason why this is impossible, or nil.
local function add_entry(list, entry)
  if type(redis.pcall('RPUSH', list, entry)) == 'table' then return list .. ' is not a list' end
end

-- Links a waiting task to another task. Returns whether it must wait, and why the dependency is not met, or nil.
local function link_task(d, entry, id)
  if d.name == id then return false, string.format('task %s would wait for itself', id) end
  local key = tasks .. d.name
  local f = redis.pcall('HMGET', key, 'state', 'outcome') -- an error reply if the key is not a hash
  if not f[1] then return false, d.any == '' and string.format('task %s does not exist', d.name) or nil end
  call('HSETNX', key, 'links', '0')
  redis.pcall('HINCRBY', key, 'dependents', 1)
  if unfinished[f[1]] then
    local why = add_entry(dependents .. d.name, entry .. d.any)
    return not why, why
  end
  local outcome = f[2] or f[1]
  if d.any == '' and outcome ~= SUCCEEDED then return false, string.format('task %s: %s', d.name, outcome) end
  return false, nil
end

-- Links a waiting task to a group. Even if the group is already complete, the server handles this later.
local function link_group(d, entry)
  call('ZINCRBY', awaited, 1, d.name) -- release counts each linked group, too
  if call('EXISTS', groups .. d.name) == 0 then
    return false, d.any == '' and string.format('group %s has no tasks', d.name) or nil
  end
  local why = add_entry(group_dependents .. d.name, entry .. d.any)
  return not why, why
end

local function link()
  local id, round = take(), take()
  local before, last, all = take_dependencies()
  local key, of = tasks .. id, round .. ':'
  local f = redis.pcall('HMGET', key, 'state', 'round', 'place', of .. 'linked', of .. 'waits', of .. 'unmet', 'links')
  if f[1] ~= 'open' or f[3] ~= 'waiting' then
    call('ZREM', unlinked, id)
    return '-'
  end
  if round_of(f[2]) ~= round or count_of(f[4]) ~= tonumber(before) then return '-' end
  local waits, unmet = count_of(f[5]), f[6] or nil
  local done = each_in_time(all, function(d)
    local must_wait, why = (d.is_group and link_group or link_task)(d, id .. ':' .. round, id)
    if must_wait then waits = waits + 1 end
    unmet = unmet or why
  end)
  local linked = before + done
  last = last and done == #all
  if last then linked = math.max(linked, count_of(f[7])) end -- another program may have written another number
  call('HSET', key, of .. 'linked', string.format('%.0f', linked), of .. 'waits', string.format('%.0f', waits))
  if unmet then call('HSET', key, of .. 'unmet', unmet) end
  if unmet or last and waits == 0 then look_now(id) end
  if last then call('ZREM', unlinked, id) end
  return done == #all and '+' or '~' .. done
end

-- Tells a waiting task that one of its dependencies is finished.
local function tell_one(entry, unmet)
  local id, round, any = string.match(entry, '^(%d+):(%d+)(%??)$')
  if not id then return end
  local key, of = tasks .. id, round .. ':'
  local f = redis.pcall('HMGET', key, 'state', 'round', of .. 'waits', of .. 'unmet')
  if f[1] ~= 'open' or round_of(f[2]) ~= round then return end
  local waits = math.max(count_of(f[3]) - 1, 0)
  call('HSET', key, of .. 'waits', string.format('%.0f', waits))
  local fails = unmet ~= '' and any == '' and not f[4]
  if fails then call('HSET', key, of .. 'unmet', unmet) end
  if fails or waits == 0 then look_now(id) end
end

-- Tells the first tasks in a list of dependents. Returns whether the list had no more tasks.
local function tell(list, unmet)
  if most <= 0 then return call('EXISTS', list) == 0 end
  local entries = redis.pcall('LRANGE', list, 0, most - 1)
  if entries.err then return true end
  local updated = each_in_time(entries, function(entry) tell_one(entry, unmet) end)
  local all = updated == #entries and updated < most
  if all then call('UNLINK', list) else call('LTRIM', list, updated, -1) end
  most = most - updated
  return all
end

local function release(d)
  if d.is_group then
    local left = redis.call('ZSCORE', awaited, d.name)
    if not left then return end
    if (score_of(left) or 0) > 1 then
      call('ZINCRBY', awaited, -1, d.name)
    else
      call('ZREM', awaited, d.name)
      call('UNLINK', group_dependents .. d.name) -- its entries are of tasks that no longer wait
    end
    return
  end
  local n = redis.pcall('HGET', tasks .. d.name, 'dependents')
  if type(n) == 'string' and count_of(n) > 0 then redis.pcall('HINCRBY', tasks .. d.name, 'dependents', -1) end
end

local function finish(id, member)
  if call('ZREM', ended, member) == 0 then return end
  local n = redis.pcall('HGET', tasks .. id, 'endings')
  if type(n) ~= 'string' then return end
  if count_of(n) > 1 then
    redis.pcall('HINCRBY', tasks .. id, 'endings', -1)
  else
    call('HDEL', tasks .. id, 'endings')
  end
end

local function handle_end()
  local id, round, state, unmet, waited = take(), take(), take(), take(), take()
  local before, last, all = take_dependencies()
  local all_know = tell(dependents .. id .. ':' .. round, unmet)
  local released, done = redis.pcall('HMGET', tasks .. id, 'state', waited .. ':released'), #all
  if released[1] and #all > 0 then
    if count_of(released[2]) ~= tonumber(before) then return '-' end
    done = each_in_time(all, release)
    call('HSET', tasks .. id, waited .. ':released', string.format('%.0f', before + done))
  end
  if not all_know or not last or done < #all then return '~' .. done end
  finish(id, string.format('%s:%s:%s', id, round, state))
  return '+'
end

local function complete()
  local group, unmet, failed = take(), take(), tonumber(take())
  if not is_complete(group) or count_in(groups .. group, unsuccessful) ~= failed then return '-' end
  if mark_of(marks, group) ~= 'decided' then call('HSET', marks, group, 'decided ' .. now_text) end
  return tell(group_dependents .. group, unmet) and '+' or '~'
end

local function probe() return is_complete(take()) and '+' or '-' end

local operations, lines = { link = link, ['end'] = handle_end, probe = probe, complete = complete }, {}
while cursor < #ARGV and (#lines == 0 or not spent(1)) do lines[#lines + 1] = operations[take()]() end
return table.concat(lines, '\n')
