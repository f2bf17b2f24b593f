-- limitreturn: returns waiting tasks to the places from which workers claim them. The tasks stay open, and keep their
-- scores.
--
-- KEYS: limits_due, open
-- ARGV: the prefixes of the keys of tasks, of returned tasks and of positions (see claim.lua); then for each limit key:
-- the key, the score in limits_due that the server has read, the time of the next check, the number of tasks, and the
-- tasks, the number of stale members, and these members
--
-- A stale member is in a place of the key, but its task does not wait there. The script removes it from this place.
-- Each task is: id, revision, the place that it enters or '', and a number of seconds or ''. With a number, the task
-- counts as returned until a worker claims it, and as returned that many seconds ago.
--
-- If a task does not wait any more, or has another revision, the script leaves it where it is. Then the limit may have
-- room for other tasks, so the key becomes due at once. If the score in limits_due has changed, a place has become free
-- since the server read the score. The key then stays due. A key without waiting tasks leaves limits_due.
--
-- Returns the number of tasks that were returned, and an error text or ''. If a place has a wrong type, its tasks keep
-- waiting, and the text names the place. If another key has a wrong type, the script writes nothing and returns the
-- error WRONGTYPE.

local checks, open, tasks, returned, positions = KEYS[1], KEYS[2], unpack(ARGV, 1, 3)
local MOST_LEVELS, MOST_COUNT = 1000, 1000000000
cursor = 3
use_places(open)

local wrong = not_sorted(open) or not_sorted(checks) or not_sorted(placed)
if wrong then return wrong end
local found, keys, wrong_at = {}, {}, ''

-- Go reads an invalid revision as 0.
local function revision_of(s)
  if s and #s <= 10 and string.match(s, '^[1-9]%d*$') and tonumber(s) <= MOST_COUNT then return s end
  return '0'
end

local function read_task(k)
  local t = { key = k.key, id = take(), revision = take(), to = take(), age = tonumber(take()) }
  local f = redis.pcall('HMGET', tasks .. t.id, 'state', 'place', 'revision') -- an error reply if the key is not a hash
  local waits = f[1] == 'open' and f[2] and limit_of(f[2]) == k.key
  if waits and revision_of(f[3]) == t.revision then
    wrong = wrong_place(f[2]) or t.to ~= '' and wrong_place(t.to)
    if wrong then
      wrong_at = wrong.err
      return
    end
    t.from, t.score = f[2], redis.call('ZSCORE', places .. f[2], t.id)
    if t.score then
      found[#found + 1] = t
      return
    end
    waits = false -- the id is in another place of the key
  end
  k.again = true
  if not waits then k.elsewhere[#k.elsewhere + 1] = t.id end
end

while cursor < #ARGV do
  local k = { key = take(), read = take(), next = take(), elsewhere = {} }
  keys[#keys + 1] = k
  for _ = 1, tonumber(take()) do read_task(k) end
  k.stale = take_list(1)
end

-- From here on, the script writes.
local plain, queues = {}, {}
for _, t in ipairs(found) do
  leave_place(t.from, t.id)
  queues[t.to == '' and DEFAULT or queue_of((split_place(t.to)))] = true
  if t.to == '' then
    redis.call('HDEL', tasks .. t.id, 'place')
    put(plain, t.score, t.id)
  else
    redis.call('HSET', tasks .. t.id, 'place', t.to)
    enter_place(t.to, t.score, t.id)
  end
  if t.age then redis.pcall('ZADD', returned .. t.key, text(now - t.age), t.id) end
end
bulk('ZADD', open, plain)
finish_places()
for queue in pairs(queues) do redis.call('SET', positions .. 'returned:' .. queue, now_text, 'EX', 60) end
if #plain > 0 then wake(wakes .. 'open', #plain / 2) end

-- Removes stale members from the places of a key. Returns whether one of them was in a place.
local function remove_stale(key, members)
  local part, removed = 'limit=' .. key, false
  for _, member in ipairs(members) do
    local f = redis.pcall('HMGET', tasks .. member, 'state', 'place')
    for _, priority in ipairs(redis.pcall('ZREVRANGE', levels .. part, 0, MOST_LEVELS - 1)) do
      local place = join_place(part, priority)
      if (f[1] ~= 'open' or f[2] ~= place) and redis.pcall('ZREM', places .. place, member) == 1 then
        removed = true
        refresh_place(place)
      end
    end
    if spent(2) then break end -- many priorities take much time
  end
  return removed
end

for _, k in ipairs(keys) do
  remove_stale(k.key, k.elsewhere)
  k.again = remove_stale(k.key, k.stale) or k.again -- other tasks may wait behind them
  if redis.call('EXISTS', levels .. 'limit=' .. k.key) == 0 then
    redis.call('ZREM', checks, k.key)
    redis.call('UNLINK', returned .. k.key)
  elseif score_of(redis.call('ZSCORE', checks, k.key) or '-1') == score_of(k.read) then
    redis.call('ZADD', checks, k.again and now_text or k.next, k.key)
    if k.again then wake(wakes .. 'server', 1) end
  end
end
return { #found, wrong_at }
