-- forget: removes the names of workers that Redis need not remember any more. The hash of a worker, and the number of
-- its name, expire by themselves. The server calls this script from time to time.
--
-- KEYS: workers, names of all workers ever seen
-- ARGV: the prefixes of the keys of workers and of the numbers of names, the rank of the first name in `workers` to
-- look at, the largest number of names to look at in each key, and the seconds for which a worker is remembered if its
-- hash does not say so
--
-- A name leaves `workers` when its worker is forgotten, and also if the drain of the worker keeps its hash. It leaves
-- the set of all names when its hash and its number have expired. The set has no order, so the script looks at random
-- names. Returns the rank at which the next call continues, or 0 if this call has seen the last name. A repeated call
-- does no harm.

local workers, names, hashes, numbers = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
local from, most, usual = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])

local wrong = not_sorted(workers)
if wrong then return wrong end
local forgotten, unused = {}, {}
local page = redis.call('ZRANGE', workers, from, from + most - 1, 'WITHSCORES')
for i = 1, #page, 2 do
  local f = redis.pcall('HMGET', hashes .. page[i], 'boot', 'remember') -- an error if the key is not a hash
  local seconds = number(f[2], usual) or usual
  if not f[1] or now - (score_of(page[i + 1]) or 0) > seconds then forgotten[#forgotten + 1] = page[i] end
end
local sample = redis.pcall('SRANDMEMBER', names, most)
for _, name in ipairs(sample) do
  if redis.call('EXISTS', hashes .. name, numbers .. name) == 0 then unused[#unused + 1] = name end
end

-- From here on, the script writes.
bulk('ZREM', workers, forgotten)
bulk('SREM', names, unused)
return #page < 2 * most and 0 or from + most - #forgotten
