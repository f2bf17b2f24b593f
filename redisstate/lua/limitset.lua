-- limitset: sets or removes the limit of a key. If the key has waiting tasks, the server checks it at once.
--
-- KEYS: limits, starts of the key
-- ARGV: the limit key, the text of the limit or '' to remove the limit, the maximum number of limits, and the seconds
-- for which the starts of the key stay (0 if the limit has no rate)
--
-- Returns 1 if the limit has changed, otherwise 0. If there would be too many limits, the script changes nothing and
-- returns -1.

local limits, starts = unpack(KEYS)
local key, limit, most, kept = unpack(ARGV)

local before = call('HGET', limits, key)
if before == (limit ~= '' and limit) then return 0 end -- false means no limit
if not before and call('HLEN', limits) >= tonumber(most) then return -1 end

-- From here on, the script writes.
if limit == '' then call('HDEL', limits, key) else call('HSET', limits, key, limit) end
-- The last starts count for the new rate, too.
if kept == '0' then call('UNLINK', starts) else call('EXPIRE', starts, kept) end
check_held(string.sub(limits, 1, -1 - #'limits'), 'limit=' .. key)
return 1
