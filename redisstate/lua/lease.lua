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

-- Returns the values of fields, false for each that is missing. A key of another type has none.
local function values_of(key, fields)
  local values = {}
  for i = 1, #fields, 500 do
    local page = try('HMGET', key, unpack(fields, i, math.min(i + 499, #fields)))
    for j = i, math.min(i + 499, #fields) do values[j] = page[j - i + 1] or false end
  end
  return values
end

local ended, done = take_list(1), {}
for i, holder in ipairs(values_of(leases, ended)) do
  if holder == run then done[#done + 1] = ended[i] end
end
bulk('HDEL', leases, done, try)

local ids, holds, leased, answer = {}, {}, {}, {}
for i = cursor + 1, #ARGV do ids[#ids + 1] = ARGV[i] end
local records = values_of(failures, ids)
for i, holder in ipairs(values_of(leases, ids)) do
  local held = holder and holder ~= run
  if held then
    if holds[holder] == nil then holds[holder] = number(try('HGET', leases, holder), 0) > now end
    held = holds[holder]
  end
  if not held and holder ~= run then put(leased, ids[i], run) end
  answer[i] = held and '-' or '+' .. (records[i] or '')
end
if leased[1] then
  try('HSET', leases, run, text(now + ARGV[2]))
  bulk('HSET', leases, leased, try)
end
return answer
