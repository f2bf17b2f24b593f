-- lease: leases finished tasks to a call of Run, so that no other one calls their callbacks (docs/manager.md,
-- "Callbacks").
--
-- KEYS: callback_leases, callbacks (the records of failed callbacks)
-- ARGV: the id of the call of Run, the seconds for which its leases hold, the number of tasks whose leases end and
-- their ids, and the ids of the tasks to lease
--
-- A lease is the id of a call of Run in the field of the task. It holds until the time in the field of this call.
--
-- Returns for each task '-' if another call has its lease, and otherwise '+' and the record of its failed callback, if
-- there is one. If Redis is full and refuses the lease, the answer is the same: archiving the task frees memory.

local leases, failures, run = KEYS[1], KEYS[2], ARGV[1]
cursor = 2
for _ = 1, tonumber(take()) do
  local id = take()
  if try('HGET', leases, id) == run then call('HDEL', leases, id) end
end

local ids, holds, answer = {}, {}, {}
for i = cursor + 1, #ARGV do
  local id = ARGV[i]
  local holder, held = try('HGET', leases, id), false
  if type(holder) == 'string' and holder ~= run then
    if holds[holder] == nil then holds[holder] = number(try('HGET', leases, holder), 0) > now end
    held = holds[holder]
  end
  if held then
    answer[#answer + 1] = '-'
  else
    if holder ~= run then
      ids[#ids + 1] = id
      ids[#ids + 1] = run
    end
    local failure = try('HGET', failures, id)
    answer[#answer + 1] = '+' .. (type(failure) == 'string' and failure or '')
  end
end
if ids[1] then try('HSET', leases, run, text(now + ARGV[2]), unpack(ids)) end
return answer
