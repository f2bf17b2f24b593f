-- located: says for each task which state it has, which place it names, and which entries its place has, all at one
-- moment. Otherwise, a task that enters and leaves its place again and again, because of its limit, may look out of
-- place whenever it is read. It changes nothing.
--
-- KEYS: for each task its hash, the place in question, and further sorted sets; the first of five is the hash
--       partitions, and the last is heads
-- ARGV: for each task its id, the number of these further keys, and a member for each of them; the last of five is ''
--
-- Returns for each task eight texts: its state and place, then scores, '' for none: its own in the place, and those of
-- the members in the further keys. Of five, the first text is '=' and the partition's head, which may be '', and the
-- last the score of this head in heads.

local function score(key, member)
  local found = redis.pcall('ZSCORE', key, member)
  return type(found) == 'string' and found or ''
end

local all, key, arg = {}, 0, 0
while arg < #ARGV do
  local id, n = ARGV[arg + 1], tonumber(ARGV[arg + 2])
  local task = redis.pcall('HMGET', KEYS[key + 1], 'state', 'place')
  local facts = { task[1] or '', task[2] or '', score(KEYS[key + 2], id), '', '', '', '', '' }
  for i = 1, n do
    facts[3 + i] = score(KEYS[key + 2 + i], ARGV[arg + 2 + i])
  end
  if n == 5 then
    local first = redis.pcall('HGET', KEYS[key + 3], ARGV[arg + 3])
    if type(first) == 'string' then
      facts[4], facts[8] = '=' .. first, score(KEYS[key + 7], first)
    end
  end
  all[#all + 1] = facts
  key, arg = key + 2 + n, arg + 2 + n
end
return all
