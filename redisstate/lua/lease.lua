-- lease: leases finished tasks to a call of Run, so that no other one calls their callbacks (docs/manager.md,
-- "Callbacks").
--
-- KEYS: callback_leases, callbacks (the records of failed callbacks), the set of the tasks that the call of Run leases
-- ARGV: the id of the call of Run, the seconds for which its leases hold, the number of tasks whose leases end and
-- their ids, and the ids of the tasks to lease
--
-- The hash callback_leases has for each call of Run the time until which its leases hold.
--
-- Returns for each task '-' if another call has its lease, and otherwise '+' and the record of its failed callback, if
-- there is one. If Redis is full and refuses the lease, the answer is the same: archiving the task frees memory.

local leases, failures, own, run = KEYS[1], KEYS[2], KEYS[3], ARGV[1]
cursor = 2
bulk('SREM', own, take_list(1), try)

local others, over, ends = {}, {}, try('HGETALL', leases) -- an error reply if the key is not a hash
for i = 1, #ends, 2 do
  local of = (number(ends[i + 1]) or 0) > now and others or over
  if ends[i] ~= run then table.insert(of, leases .. ':' .. ends[i]) end
end

local answer, leased, failed = {}, {}, try('EXISTS', failures) == 1
for first = cursor + 1, #ARGV, 500 do
  local ids, held = { unpack(ARGV, first, math.min(first + 499, #ARGV)) }, {}
  for _, key in ipairs(others) do
    for i, is in ipairs(try('SMISMEMBER', key, unpack(ids))) do held[i] = held[i] or is == 1 end
  end
  local records = failed and try('HMGET', failures, unpack(ids)) or {}
  for i = 1, #ids do
    answer[#answer + 1] = held[i] and '-' or '+' .. (records[i] or '')
    if not held[i] then leased[#leased + 1] = ids[i] end
  end
end
if leased[1] then
  for _, key in ipairs(over) do bulk('SREM', key, leased, try) end -- a call that stood still may renew its leases
  try('HSET', leases, run, text(now + ARGV[2]))
  bulk('SADD', own, leased, try)
  try('EXPIRE', own, 86400) -- as leasesKept in redisstate/callbacks/handlings.go
end
return answer
