-- restore: writes tasks from a dump, with their entries in the lists and indexes.
--
-- from-state: none; to-state: the state in the task's hash
--
-- An existing task stays unchanged, so the call may be repeated at any time. The group and the time of opening of a
-- task never change. So if an existing task with the same id differs in one of them, it is another task.
--
-- KEYS: due, task_id, unique, and the lists, of which the first is the open list
-- ARGV: the prefixes of the keys of tasks, of groups and of updates, the last id to reserve, the states in which tasks
-- hold their unique keys, as in transact.lua, and the number of tasks
--
-- Then for each task:
-- - id, index of the task's list in KEYS or '0' if it is in no list, its place in the open list or '' (see places.lua)
-- - code of the task's state in an index, score in the list, the names of its indexes (see group_and_queue)
-- - time at which the task was opened, or '' if it is unknown
-- - due time, or '-' if the task never becomes due; a past time becomes now
-- - the unique key that the task holds or '', the limit key of a running task or ''
-- - the number of properties, and the properties with their values
-- - the number of updates, and the id, time and line of each
--
-- Returns the number of tasks that were written, or the negative id that belongs to another task. Then the script has
-- written nothing.

local tasks, groups, updates, last = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
cursor = 4

-- Skips a list, so that it need not be copied. Returns the indexes in ARGV of its first and its last element.
local function skip(each)
  local n, from = each * tonumber(take()), cursor + 1
  cursor = cursor + n
  return from, cursor
end

local function read_task()
  local t = { id = take(), list = tonumber(take()), place = take(), code = tonumber(take()) }
  t.score, t.names, t.opened, t.look, t.unique, t.limit = take(), take(), take(), take(), take(), take()
  t.hash, t.hash_end = skip(2)
  t.updates, t.updates_end = skip(3)
  return t
end

local function is_there(t)
  local there = redis.pcall('HMGET', tasks .. t.id, '0:open', 'group') -- an error reply if the key is not a hash
  return not there.err and (there[1] or '') == t.opened and (there[2] or '') == group_and_queue(t.names)
end

for i = 1, #KEYS do
  local wrong = i ~= 2 and i ~= 3 and not_sorted(KEYS[i])
  if wrong then return wrong end
end

use_places(KEYS[4])
limiting.use(KEYS[1])
local holding, keys_refused = take_holding(), no_keys(KEYS[3])
local new = {}
for _ = 1, tonumber(take()) do
  local t = read_task()
  if redis.call('EXISTS', tasks .. t.id) == 0 then
    new[#new + 1] = t
    local wrong = t.place ~= '' and wrong_place(t.place)
    if wrong then return wrong end
    t.takes_key = t.unique ~= '' and not keys_refused and not task_with_key(KEYS[3], t.unique, tasks, holding, {})
  elseif not is_there(t) then
    return -tonumber(t.id)
  end
end
local counter = number(redis.call('GET', KEYS[2]), 0) or 0

local add, entered = {}, {}
for _, t in ipairs(new) do
  for i = t.hash, t.hash_end, 500 do
    redis.call('HSET', tasks .. t.id, unpack(ARGV, i, math.min(i + 499, t.hash_end)))
  end
  if t.list > 0 then
    if t.place ~= '' then enter_place(t.place, t.score, t.id) else put(into(add, KEYS[t.list]), t.score, t.id) end
    if t.names ~= '' then
      enter_indexes(groups, t.names, t.code, t.id)
      if entered[#entered] ~= t.names then entered[#entered + 1] = t.names end
    end
  end
  if t.look ~= '-' then put(into(add, KEYS[1]), tonumber(t.look) < now and text(now) or t.look, t.id) end
  if t.limit ~= '' then limiting.count(t.limit, t.id, true) end
  if t.takes_key then redis.call('HSET', KEYS[3], t.unique, t.id) end
  if t.updates_end > t.updates then redis.call('DEL', updates .. t.id) end
  for i = t.updates, t.updates_end, 3 do
    redis.call('XADD', updates .. t.id, ARGV[i], 'time', ARGV[i + 1], 'line', ARGV[i + 2])
  end
end
for key, of in pairs(add) do bulk('ZADD', key, of) end
finish_indexes()
keep_names(groups, entered)
finish_places()
limiting.finish()
if last > counter then redis.call('SET', KEYS[2], string.format('%.0f', last)) end
return #new
