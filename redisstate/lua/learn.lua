-- learn: writes which requirements an offer serves, up to a number.
--
-- KEYS: the hash of what the offer serves
-- ARGV: the number of the last requirement in the hash, as Go knows it; the number of the last one that Go has compared
-- now; the lifetime of a new hash in seconds; the requirements between these numbers that the offer serves, each with
-- its value
--
-- If another client has written meanwhile, or Redis has lost the hash, the script writes nothing. So a hash has all
-- requirements up to its number. Returns 1 if the script has written, otherwise 0.

local key, before, upto, lifetime = KEYS[1], unpack(ARGV, 1, 3)
if (call('HGET', key, 'upto') or '0') ~= before then return 0 end
for i = 4, #ARGV, 500 do call('HSET', key, unpack(ARGV, i, math.min(i + 499, #ARGV))) end
call('HSET', key, 'upto', upto)
if before == '0' then call('EXPIRE', key, lifetime) end
return 1
