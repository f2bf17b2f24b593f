-- limituse: reads how the limits of keys are used, all at one moment. If a limit has no room for waiting tasks, or if
-- the client asks for it, the script also removes from `limited:$key` the ids of tasks that no longer run.
--
-- KEYS: limits, due, open
-- ARGV: the prefix of task keys, the seconds after which a returned task counts as unclaimed, the maximum number of
-- running tasks and of unclaimed tasks that the script checks for each key, '1' to check running tasks of each key,
-- and the limit keys
--
-- Returns a list for each key; readLimitUse in redisstate/limits/limits.go says what its elements are. If the call
-- takes too long, the script leaves out the last keys, but never the first one.
--
-- The script writes only data that can be rebuilt. If a key of Redis has a wrong type, the limit has no room.

local limits, due, open = unpack(KEYS)
local tasks, patience, most, check = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4] == '1'
local MOST_COUNT = 1000000000
local KEPT_FOR, MOST_REMOVED = 600, 2000 -- entries of returned tasks: seconds for which they stay, and how many go
use_places(open)
limiting.use(due)

local function size(key)
  local n = try('ZCARD', key)
  return type(n) == 'number' and n or MOST_COUNT
end

-- Checks the tasks whose last check was the longest time ago.
local function remove_idle(key)
  for _, id in ipairs(try('ZRANGE', limiting.running .. key, 0, most - 1)) do
    local f = try('HMGET', tasks .. id, 'state', 'limit_key') -- an error reply if the key is not a hash
    local runs = (f[1] == 'running' or f[1] == 'executed') and f[2] == key
    set_score(limiting.running .. key, runs and now_text, id)
  end
end

-- If the clock was set back, the last starts lie in the future. The function replaces all with the present. So the key
-- waits for one period of its rate, and not until the clock has caught up.
local function correct_starts(list, per)
  local last, present = try('LINDEX', list, -1), {}
  if type(last) ~= 'string' or (tonumber(last) or INF) <= now then return end
  for i = 1, try('LLEN', list) do present[i] = now_text end
  try('UNLINK', list)
  bulk('RPUSH', list, present, try)
  try('EXPIRE', list, math.ceil(per) + 60)
end

-- Returns the number of rounds that may start now, and the time from which one more may start.
local function free_starts(list, count, per)
  correct_starts(list, per)
  local length = try('LLEN', list)
  if type(length) ~= 'number' then return 0, now + per end
  local function ends_at(i) return (tonumber(try('LINDEX', list, i)) or now) + per end
  local low, high = math.max(0, length - count), length -- the first start of the period is between these indexes
  while low < high do
    local middle = math.floor((low + high) / 2)
    if ends_at(middle) > now then high = middle else low = middle + 1 end
  end
  return count - (length - low), low < length and ends_at(low) or now + per
end

-- Removes entries that are too old, or lie in the future because the clock was set back. A call removes few of them.
local function remove_old(set)
  for least, highest in pairs({ ['-inf'] = text(now - KEPT_FOR), [text(now + 1)] = '+inf' }) do
    bulk('ZREM', set, try('ZRANGEBYSCORE', set, least, highest, 'LIMIT', 0, MOST_REMOVED), try)
  end
end

-- Returns the requirements of the first unclaimed tasks. If a task cannot be claimed any more, the function removes its
-- entry.
local function unserved_requirements(key, set, unclaimed)
  local seen, requirements_of = {}, {}
  for _, id in ipairs(try('ZRANGE', set, 0, math.min(unclaimed, most) - 1)) do
    local f = try('HMGET', tasks .. id, 'state', 'place', 'limit_key') -- an error if the key is not a hash
    local name = f[1] == 'open' and f[3] == key and f[2] and split_place(f[2])
    if not name or is_held(name) then
      try('ZREM', set, id)
    elseif not seen[name] then
      seen[name] = true
      table.insert(requirements_of, name)
    end
  end
  return requirements_of
end

-- Returns the numbers of returned tasks and of unclaimed tasks, and the requirements of the first unclaimed tasks.
local function returned_tasks(key)
  local set, unserved = limiting.returned .. key, {}
  remove_old(set)
  local function count() return try('ZCOUNT', set, '-inf', text(now - patience)) end
  local unclaimed = count()
  if type(unclaimed) ~= 'number' then return 0, 0, {} end
  if unclaimed > 0 then unserved, unclaimed = unserved_requirements(key, set, unclaimed), count() end
  return size(set) - unclaimed, unclaimed, unserved
end

local function use_of(key)
  local limit, waiting = try('HGET', limits, key) or '', size(set_of('limit=' .. key))
  if type(limit) ~= 'string' then limit = 'at_most=0' end
  local at_most, count, per = limiting.parse(limit)
  local running = size(limiting.running .. key)
  if check or waiting > 0 and running >= at_most then
    remove_idle(key)
    running = size(limiting.running .. key)
  end
  if check then set_score(limiting.used, running > 0 and now_text, key) end
  local free, next_start = 0, nil
  if per then free, next_start = free_starts(limiting.starts .. key, count, per) end
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
