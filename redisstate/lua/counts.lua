-- counts: counts the tasks in each state, all at one moment. It changes nothing.
--
-- KEYS: the lists, or the indexes of groups
-- ARGV: nothing for lists; for indexes of groups, the lowest and the highest score of each state in an index
--
-- Returns the number of tasks in each list, or in each state, summed over the groups.

local counts = {}
if #ARGV == 0 then
  for i, key in ipairs(KEYS) do counts[i] = redis.call('ZCARD', key) end
end
for i = 1, #ARGV, 2 do
  local n = 0
  for _, key in ipairs(KEYS) do n = n + redis.call('ZCOUNT', key, ARGV[i], ARGV[i + 1]) end
  counts[#counts + 1] = n
end
return counts
