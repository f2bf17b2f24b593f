-- indexnames: makes the set of the names of all groups, or of all queues, agree with their indexes. The audit calls it,
-- because data of the original TDF, and data that was changed by hand, may lack names, or have too many.
--
-- KEYS: group_names or queue_names
-- ARGV: the prefix of the keys of the indexes, the name after which the script checks names of the set ('' for the
-- beginning), the number of names to check, the number of names that have an index, and these names
--
-- Removes the names without an index from the checked ones. Adds the given names, unless their indexes are gone.
-- Returns the last checked name, or '' if the set has no further ones. Repeating the call does no harm.

local names, indexes, after, most = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3])
cursor = 3

local wrong = not_sorted(names)
if wrong then return wrong end
local there, gone = {}, {}
for _, name in ipairs(take_list(1)) do
  if redis.call('EXISTS', indexes .. name) == 1 then put(there, 0, name) end
end
local checked = redis.call('ZRANGEBYLEX', names, after == '' and '-' or '(' .. after, '+', 'LIMIT', 0, most)
for _, name in ipairs(checked) do
  if redis.call('EXISTS', indexes .. name) == 0 then gone[#gone + 1] = name end
end

-- From here on, the script writes.
bulk('ZREM', names, gone)
bulk('ZADD', names, there)
return #checked == most and checked[most] or ''
