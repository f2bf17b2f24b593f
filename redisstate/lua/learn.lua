-- learn: writes which requirements an offer serves, up to a number.
--
-- KEYS: the hash of what the offer serves
-- ARGV: the number of the last requirement in the hash, as Go knows it; the number of the last one that Go has compared
-- now; the lifetime of a new hash in seconds; the requirements between them that the offer serves, with their values
--
-- Returns 1. If another client has written meanwhile, or Redis has lost the hash, it changes nothing and returns 0.

local key, before, upto, lifetime = KEYS[1], unpack(ARGV, 1, 3)
if (call('HGET', key, 'upto') or '0') ~= before then return 0 end
for i = 4, #ARGV, 500 do call('HSET', key, unpack(ARGV, i, math.min(i + 499, #ARGV))) end
call('HSET', key, 'upto', upto)
if before == '0' then call('EXPIRE', key, lifetime) end
return 1
