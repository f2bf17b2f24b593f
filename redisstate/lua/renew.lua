-- renew: extends the leases of claims, and stores the workers' reports about their rounds.
--
-- from-state and to-state: running
--
-- KEYS: due
-- ARGV: the prefixes of the keys of tasks, of updates and of followers, the lease in seconds, and the seconds after a
-- deadline until which the worker itself reports the time-out
--
-- Then for each claim:
-- - id of the task, round, claim id, '1' if the program has begun, '2' if it has ended, otherwise ''
-- - seconds from now to the deadline; 'inf' means no deadline, and '' keeps the deadline. If the program has ended, a
--   later deadline stays
-- - seconds since the last output of the program; '' means no new output
-- - the number of properties to write, and these properties with their values
-- - number of the first update in the round, the number of updates, and the updates
--
-- Returns { now, a line for each of the first claims }. The line is '+', or '+f' if a user watches the task. If the
-- worker no longer has the claim, the line is '-id round state', with the task's true round and state. If the call
-- takes too long, the script leaves out the last claims, but never the first.
--
-- A worker still has its claim if the task is in the same round, and the worker has not committed a result of this
-- round. This holds even if the late result of another claim has made the task executed. If the stream of updates
-- already has an update, the script does not add it again.

local due, tasks, streams, follows, lease, margin = KEYS[1], unpack(ARGV, 1, 5)
cursor = 5
local begun = {} -- the ids of tasks whose programs have begun

-- Returns the number of the last update of a round, or nil if the stream cannot take updates: another program has added
-- an entry, or the key is not a stream. An update's id in the stream consists of its round and its number.
local function last_update(stream, round)
  local last = redis.pcall('XREVRANGE', stream, '+', '-', 'COUNT', 1) -- an error reply if the key is not a stream
  if last.err then return nil end
  local of, n = string.match(last[1] and last[1][1] or '', '^(%d+)-(%d+)$')
  if of and tonumber(of) > tonumber(round) then return nil end
  return of == round and tonumber(n) or 0
end

local function add_updates(stream, round, first, updates)
  local last = #updates > 0 and last_update(stream, round)
  if not last then return end
  for i, line in ipairs(updates) do
    local n = first + i - 1
    if n > last then
      redis.call('XADD', stream, string.format('%s-%.0f', round, n), 'time', now_text, 'line', line)
    end
  end
end

local function renew(c)
  local key, of = tasks .. c.id, c.round .. ':'
  local f = redis.pcall('HMGET', key, 'state', 'round', of .. 'claim', of .. 'executed', of .. 'started', 'deadline',
    of .. 'running', 'lease_until', 'lease', 'end_before') -- an error reply if the key is not a hash
  local state = f[1] or ''
  local mine = round_of(f[2]) == c.round and f[3] == c.claim and not f[4]
  if not mine or state ~= 'running' and state ~= 'executed' then
    return string.format('-%s %s %s', c.id, f[2] or '0', state)
  end
  -- Unless the program has ended, the latest possible deadline is end_before.
  local before, most = number(f[6], INF) or INF, number(f[10], INF) or INF
  local deadline = before
  if c.limit ~= '' and c.begun == '2' then
    deadline = math.max(before, now + number(c.limit, INF))
  elseif c.limit ~= '' and not f[5] then
    deadline = math.min(now + number(c.limit, INF), most)
  end
  local until_time = now + lease
  -- A renewal extends a lease, or ends it, but never shortens it. If the clock was set back, the lease counts from now.
  local kept = lease + 0 > 0 and math.min(number(f[8], 0) or 0, now + (number(f[9], 0) or 0)) or 0
  local h = { key, 'lease_until', text(math.max(until_time, kept)), unpack(c.report) }
  if kept > until_time then until_time = kept elseif f[9] ~= lease then put(h, 'lease', lease) end
  if deadline ~= before then put(h, 'deadline', text(deadline)) end
  -- The start is not earlier than the claim, even if the clock was set back.
  if c.begun == '1' and not f[5] then put(h, of .. 'started', text(math.max(now, number(f[7], 0) or 0))) end
  if c.silent ~= '' then put(h, of .. 'last_output', text(now - number(c.silent, 0))) end
  redis.call('HSET', unpack(h))
  if c.begun == '1' and not f[5] then begun[#begun + 1] = c.id end
  if deadline < INF then most = math.max(most, deadline) end
  redis.call('ZADD', due, text(math.min(deadline + margin, most, until_time)), c.id)
  add_updates(streams .. c.id, c.round, c.first, c.updates)
  return redis.call('EXISTS', follows .. c.id) == 1 and '+f' or '+'
end

local wrong = not_sorted(due)
if wrong then return wrong end

local answer = { now_text }
while cursor < #ARGV and (#answer % 16 > 0 or not spent(2)) do
  answer[#answer + 1] = renew({
    id = take(), round = take(), claim = take(), begun = take(), limit = take(), silent = take(),
    report = take_list(2), first = tonumber(take()), updates = take_list(1),
  })
end
sources.note_starts(string.sub(due, 1, -1 - #'due'), begun)
return answer
