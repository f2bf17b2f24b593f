-- restorevalues: writes values of a namespace that belong to no task, such as limits. It changes no existing value.
--
-- The call may be repeated at any time.
--
-- KEYS:
--  1. hash with all values of one kind
--  2. partitions
-- - the index of the group of each value, if each value needs a group with tasks
--
-- ARGV:
--  1. the maximum number of values in the hash, or '0'
--  2. '1' if the version of the partitions must change, because claims obey these values
-- - the name and the text of each value
--
-- Returns a character for each value:
-- - '+': the hash now has the value
-- - '-': the hash has another value of this name
-- - '?': the group of the value has no tasks
-- If there would be too many values, the script changes nothing and returns ''.

local hash, partitions, most, obeyed = KEYS[1], KEYS[2], tonumber(ARGV[1]), ARGV[2] == '1'

local answers, new = {}, {}
for i = 3, #ARGV, 2 do
  local name, index = ARGV[i], KEYS[#answers + 3]
  local there = redis.call('HGET', hash, name)
  if there then
    answers[#answers + 1] = there == ARGV[i + 1] and '+' or '-'
  elseif index and redis.call('EXISTS', index) == 0 then
    answers[#answers + 1] = '?'
  else
    answers[#answers + 1] = '+'
    new[#new + 1], new[#new + 2] = name, ARGV[i + 1]
  end
end
if most > 0 and redis.call('HLEN', hash) + #new / 2 > most then return '' end
redis.call('HLEN', partitions) -- an error if it is not a hash

-- From here on, the script writes.

if #new > 0 then bulk('HSET', hash, new) end
if obeyed and #new > 0 then redis.call('HSET', partitions, 'version', now_text) end
return table.concat(answers)
