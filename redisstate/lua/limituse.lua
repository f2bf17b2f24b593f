-- limituse: reads how the limits of keys are used. If a limit has no room for waiting tasks, or if the client asks for
-- it, the script also removes from `limited:$key` the ids of tasks that no longer run.
--
-- KEYS: limits, due, open
-- ARGV: the prefix of task keys, the seconds after which a returned task counts as unclaimed, the maximum number of
-- running tasks and of unclaimed tasks that the script checks for each key, '1' to check running tasks of each key,
-- and the limit keys
--
-- Returns a list for each key: the time now, the text of the limit or '', the numbers of running and of waiting tasks,
-- the number of rounds that the rate allows to start now, the time at which it will allow another one or '', the number
-- of returned tasks that are not claimed yet and do not count as unclaimed, the number of those that do, the
-- requirements of the first of these, the largest number of running tasks or -1 for any number, the number of starts of
-- the rate (0 if there is no rate), and its time in seconds or ''. If the call takes too long, the script leaves out
-- the last keys, but never the first one.
--
-- The script writes only data that can be rebuilt. If a key of Redis has a wrong type, the limit has no room.

local limits, due, open = unpack(KEYS)
local tasks, patience, most, checks = unpack(ARGV, 1, 4)
local check = checks == '1'
local MOST_COUNT = 1000000000
local KEPT_FOR = 600 -- seconds; the script removes older entries of returned tasks
local MOST_REMOVED = 2000 -- entries of returned tasks
use_places(open)
limiting.use(due)

local function size(key)
  local n = redis.pcall('ZCARD', key)
  return type(n) == 'number' and n or MOST_COUNT
end

-- Checks the tasks whose last check was the longest time ago.
local function remove_idle(key)
  for _, id in ipairs(redis.pcall('ZRANGE', limiting.running .. key, 0, most - 1)) do
    local f = redis.pcall('HMGET', tasks .. id, 'state', 'limit_key') -- an error reply if the key is not a hash
    local runs = (f[1] == 'running' or f[1] == 'executed') and f[2] == key
    set_score(limiting.running .. key, runs and now_text, id)
  end
end

-- If the clock was set back, the last starts lie in the future. The function replaces their times with the present. So
-- the key waits for one period of its rate, and not until the clock has caught up.
local function correct_starts(list, per)
  local last = redis.pcall('LINDEX', list, -1)
  if type(last) ~= 'string' or (tonumber(last) or INF) <= now then return end
  local past = {}
  for _, at in ipairs(redis.pcall('LRANGE', list, 0, -1)) do
    past[#past + 1] = text(math.min(tonumber(at) or INF, now))
  end
  redis.pcall('UNLINK', list)
  bulk('RPUSH', list, past, redis.pcall)
  redis.pcall('EXPIRE', list, math.ceil(per) + 60)
end

-- Returns the number of rounds that may start now, and the time from which one more may start.
local function free_starts(key, count, per)
  local list = limiting.starts .. key
  correct_starts(list, per)
  local length = redis.pcall('LLEN', list)
  if type(length) ~= 'number' then return 0, now + per end
  local function at(i) return tonumber(redis.pcall('LINDEX', list, i)) or now end
  local low, high = math.max(0, length - count), length -- the first start of the period is between these indexes
  while low < high do
    local middle = math.floor((low + high) / 2)
    if at(middle) + per > now then high = middle else low = middle + 1 end
  end
  if low == length then return count, now + per end
  return count - (length - low), at(low) + per
end

-- Removes entries that are too old, or lie in the future because the clock was set back. A call removes few of them.
local function remove_old(set)
  local old = redis.pcall('ZCOUNT', set, '-inf', text(now - KEPT_FOR))
  if type(old) ~= 'number' then return end
  local future = redis.pcall('ZCOUNT', set, text(now + 1), '+inf')
  if old > 0 then redis.pcall('ZREMRANGEBYRANK', set, 0, math.min(old, MOST_REMOVED) - 1) end
  if future > 0 then redis.pcall('ZREMRANGEBYRANK', set, -math.min(future, MOST_REMOVED), -1) end
end

-- Returns the requirements of the first unclaimed tasks. If a task cannot be claimed any more, the function removes its
-- entry.
local function unserved_requirements(key, set, unclaimed)
  local seen, requirements_of = {}, {}
  for _, id in ipairs(redis.pcall('ZRANGE', set, 0, math.min(unclaimed, tonumber(most)) - 1)) do
    local f = redis.pcall('HMGET', tasks .. id, 'state', 'place', 'limit_key') -- an error if the key is not a hash
    local name = f[2] and split_place(f[2])
    if f[1] ~= 'open' or not name or is_held(name) or f[3] ~= key then
      redis.pcall('ZREM', set, id)
    else
      if not seen[name] then requirements_of[#requirements_of + 1] = name end
      seen[name] = true
    end
  end
  return requirements_of
end

-- Returns the numbers of returned tasks and of unclaimed tasks, and the requirements of the first unclaimed tasks.
local function returned_tasks(key)
  local set, unserved = limiting.returned .. key, {}
  remove_old(set)
  local function count() return redis.pcall('ZCOUNT', set, '-inf', text(now - patience)) end
  local unclaimed = count()
  if type(unclaimed) ~= 'number' then return 0, 0, {} end
  if unclaimed > 0 then unserved, unclaimed = unserved_requirements(key, set, unclaimed), count() end
  return redis.pcall('ZCARD', set) - unclaimed, unclaimed, unserved
end

local function use_of(key)
  local limit, waiting = try('HGET', limits, key) or '', size(set_of('limit=' .. key))
  if type(limit) ~= 'string' then limit = 'at_most=0' end
  local at_most, count, per = limiting.parse(limit)
  if check or waiting > 0 and size(limiting.running .. key) >= at_most then remove_idle(key) end
  local running = size(limiting.running .. key)
  if check then set_score(limiting.used, running > 0 and now_text, key) end
  local free, next_start = 0, nil
  if per then free, next_start = free_starts(key, count, per) end
  local new, unclaimed, unserved = returned_tasks(key)
  return {
    now_text, limit, running, waiting, free, next_start and text(next_start) or '', new, unclaimed, unserved,
    at_most < INF and math.min(at_most, MOST_COUNT) or -1, math.min(count or 0, MOST_COUNT), per and text(per) or '',
  }
end

local all = {}
for i = 5, #ARGV do
  if i > 5 and spent(1) then break end
  all[i - 4] = use_of(ARGV[i])
end
return all
