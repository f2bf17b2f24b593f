-- restorevalues: writes values of a namespace that belong to no task, such as limits. It changes no existing value, so
-- the call may be repeated at any time.
--
-- KEYS: hash with all values of one kind, partitions, and the index of each value's group, if it must have tasks
-- ARGV: the maximum number of values in the hash or '0', '1' if the version of the partitions must change because
-- claims obey these values, and the name and the text of each value
--
-- Returns a character for each value: '+' if the hash now has the value, '-' if it has another value of this name, or
-- '?' if the group of the value has no tasks. If there would be too many values, the script changes nothing and
-- returns ''.

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
    put(new, name, ARGV[i + 1])
  end
end
if most > 0 and redis.call('HLEN', hash) + #new / 2 > most then return '' end
redis.call('HLEN', partitions) -- an error if it is not a hash

-- From here on, the script writes.
if #new > 0 then bulk('HSET', hash, new) end
if obeyed and #new > 0 then redis.call('HSET', partitions, 'version', now_text) end
return table.concat(answers)
