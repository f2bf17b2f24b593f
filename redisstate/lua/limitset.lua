-- limitset: sets or removes the limit of a key. It moves no task.
--
-- KEYS:
--  1. limits
--  2. limits_due
--  3. starts of the key
--  4. wake list of the server
--
-- ARGV:
--  1. limit key
--  2. text of the limit, or '' to remove the limit
--  3. the maximum number of limits
--  4. number of seconds for which the starts of the key stay, or 0 if the limit has no rate
--
-- Returns 1 if the limit has changed, otherwise 0. If there would be too many limits, the script changes nothing and
-- returns -1. If the key has waiting tasks, the server checks the key at once.

local limits, checks, key, limit = KEYS[1], KEYS[2], ARGV[1], ARGV[2]

local wrong = not_sorted(checks)
if wrong then return wrong end
local before = redis.call('HGET', limits, key)
if before == (limit ~= '' and limit) then return 0 end -- false means no limit
if not before and redis.call('HLEN', limits) >= tonumber(ARGV[3]) then return -1 end

-- From here on, the script writes.

if limit == '' then
  redis.call('HDEL', limits, key)
else
  redis.call('HSET', limits, key, limit)
end
if ARGV[4] == '0' then
  redis.call('UNLINK', KEYS[3])
else
  redis.call('EXPIRE', KEYS[3], ARGV[4]) -- the last starts count for the new rate, too
end
if redis.call('ZADD', checks, 'XX', 'CH', now_text, key) == 1 then wake(KEYS[4], 1) end
return 1
