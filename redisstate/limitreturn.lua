-- limitreturn: returns waiting tasks to the places from which workers claim them. The tasks stay open, and keep their
-- scores.
--
-- KEYS:
--  1. limits_due
--  2. open
--
-- ARGV:
--  1. prefix of task keys
--  2. prefix of the keys of returned tasks
-- - for each limit key: the key, the score in limits_due that the server has read, the time of the next check, the
--   number of tasks, and the tasks
--
-- Each task is: id, revision, the place that it enters or '', and a flag. The flag is '1' if the task uses room of the
-- limit. It then counts as returned until a worker claims it.
--
-- If a task does not wait any more, or has another revision, the script leaves it where it is. If the score in
-- limits_due has changed, a place has become free since the server read the score. The key then stays due. A key
-- without waiting tasks leaves limits_due.
--
-- Returns the number of tasks that were returned. If a key has a wrong type, the script writes nothing and returns the
-- error WRONGTYPE.

local checks, open, tasks, returned = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
cursor = 2
use_places(open)

local wrong = not_sorted(open) or not_sorted(checks)
local found, keys = {}, {}

local function read_task(key)
  local t = { id = take(), revision = take(), to = take(), counts = take() == '1' }
  local f = redis.pcall('HMGET', tasks .. t.id, 'state', 'place', 'revision') -- an error reply if the key is not a hash
  if f[1] ~= 'open' or not f[2] or limit_of(f[2]) ~= key or (f[3] or '0') ~= t.revision then return end
  wrong = wrong or wrong_place(f[2]) or t.to ~= '' and wrong_place(t.to) or nil
  if wrong then return end
  t.key, t.from, t.score = key, f[2], redis.call('ZSCORE', places .. f[2], t.id)
  if t.score then found[#found + 1] = t end
end

while cursor < #ARGV do
  local k = { key = take(), read = take(), next = take() }
  keys[#keys + 1] = k
  for _ = 1, tonumber(take()) do read_task(k.key) end
end
if wrong then return wrong end

-- From here on, the script writes.

local plain = {}
for _, t in ipairs(found) do
  leave_place(t.from, t.id)
  if t.to == '' then
    redis.call('HDEL', tasks .. t.id, 'place')
    plain[#plain + 1], plain[#plain + 2] = t.score, t.id
  else
    redis.call('HSET', tasks .. t.id, 'place', t.to)
    enter_place(t.to, t.score, t.id)
  end
  if t.counts then redis.pcall('ZADD', returned .. t.key, now_text, t.id) end
end
bulk('ZADD', open, plain)
finish_places()
if #plain > 0 then wake(wakes .. 'open', #plain / 2) end

for _, k in ipairs(keys) do
  if redis.call('EXISTS', levels .. 'limit=' .. k.key) == 0 then
    redis.call('ZREM', checks, k.key)
    redis.call('UNLINK', returned .. k.key)
  elseif score_of(redis.call('ZSCORE', checks, k.key) or '-1') == score_of(k.read) then
    redis.call('ZADD', checks, k.next, k.key)
  end
end
return #found
