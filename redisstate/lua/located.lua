-- located: says of each task which state it has, which place it names, and whether a place has it, all at one moment.
-- It changes nothing.
--
-- KEYS: the hash of each task, and the place in question
-- ARGV: the id of each task
--
-- Returns { state, place, '1' or '' } for each task; the state is '' if the hash is not one.

local all = {}
for i, id in ipairs(ARGV) do
  local task = redis.pcall('HMGET', KEYS[2 * i - 1], 'state', 'place')
  local score = redis.pcall('ZSCORE', KEYS[2 * i], id)
  all[i] = { task[1] or '', task[2] or '', type(score) == 'string' and '1' or '' }
end
return all
