-- renew: extends the leases of claims that are still their worker's.
--
-- from-state  running
-- to-state    running
--
-- KEYS  1 due
-- ARGV  1 prefix of task keys   2 lease in seconds, then for each claim: id, round, claim id,
--       '1' if the program has begun or '', seconds from now to the deadline ('inf': none; '':
--       as it was), and the latest moment that the deadline may be ('inf': none)
--
-- Returns { now, a line for each claim }: '+', or '-id round state' of what was found instead.
-- A claim is still its worker's while the round is, and no result of the round was committed;
-- also where somebody's late result of another round made the task look executed.

local due, tasks, lease = KEYS[1], ARGV[1], tonumber(ARGV[2])
local function renew(id, round, claim, begun, limit, most)
  local key, of = tasks .. id, round .. ':'
  local f = redis.call('HMGET', key, 'state', 'round', of .. 'claim', of .. 'executed', of .. 'started', 'deadline',
    of .. 'running')
  local state = f[1] or ''
  local mine = round_of(f[2]) == round and f[3] == claim and not f[4]
  if not mine or state ~= 'running' and state ~= 'executed' then
    return string.format('-%s %s %s', id, f[2] or '0', state)
  end
  local deadline = number(f[6], INF)
  local h = { key, 'lease_until', text(now + lease) }
  if limit ~= '' and not f[5] then
    deadline = math.min(now + number(limit, INF), number(most, INF))
    h[#h + 1] = 'deadline'
    h[#h + 1] = text(deadline)
  end
  if begun == '1' and not f[5] then
    h[#h + 1] = of .. 'started'
    h[#h + 1] = text(math.max(now, number(f[7], 0) or 0)) -- not before the claim, whatever the clock does
  end
  redis.call('HSET', unpack(h))
  redis.call('ZADD', due, text(math.min(deadline, now + lease)), id)
  return '+'
end

local answer = { text(now) }
for i = 3, #ARGV, 6 do
  answer[#answer + 1] = renew(ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4], ARGV[i + 5])
end
return answer
