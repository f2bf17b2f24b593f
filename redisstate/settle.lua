-- settle: makes the same move for each due task that fits a pattern. The rules in Go decide the move, once for all of
-- these tasks. The server settles the other due tasks one by one.
--
-- from-state  the state that the form names
-- to-state    the state that the form names, another state
--
-- KEYS  1 calls of this client   2 due   3 the list that the tasks leave   4 the list that they enter
--       then wake lists of the components that wait for tasks in list 4
-- ARGV  1 call slot   2 sequence number   3 prefix of task keys   4 prefix of group keys   5 name of the server
--       6 the highest score of a due task   7 the largest number of due tasks
--       the form (see read_form), without own properties
--       n, n properties and values: a task fits only if it has these values
--       n, n properties that must be missing
--       n, n properties that must not be empty
--       the name of a property that must be missing or empty
--
-- Returns the number of moved tasks, and a line 'id score' for each other due task. If the call takes too long, the
-- last tasks count as others. The script removes members of due that are not ids.

local call = redis.call
local due, left, entered = KEYS[2], KEYS[3], KEYS[4]
local slot, sequence, tasks, groups, who = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4], ARGV[5]
cursor = 7

local answer, stale = answered(slot, sequence)
if answer or stale then return answer or stale end

local found = call('ZRANGEBYSCORE', due, '-inf', ARGV[6], 'WITHSCORES', 'LIMIT', 0, tonumber(ARGV[7]))
if #found == 0 then return '0' end
local wrong = not_sorted(left) or not_sorted(entered)
if wrong then return wrong end

local form = read_form()
local equal, missing, filled, empty = take_list(2), take_list(1), take_list(1), take()

local read = { '', 'log', 'group', form.round .. ':' .. form.from }
local FIRST = #read -- the position in a reply of the first value to compare
for i = 1, #equal, 2 do read[#read + 1] = equal[i] end
for _, name in ipairs(missing) do read[#read + 1] = name end
for _, name in ipairs(filled) do read[#read + 1] = name end

-- Returns the values of a task that fits the pattern.
local function fitting(id)
  read[1] = tasks .. id
  local f = redis.pcall('HMGET', unpack(read)) -- an error if the key is not a hash
  local entered_at, at = f[3] and tonumber(f[3]), FIRST
  if not entered_at or entered_at <= 0 then return nil end
  for i = 2, #equal, 2 do
    if f[at] ~= equal[i] then return nil end
    at = at + 1
  end
  for _ = 1, #missing do
    if f[at] then return nil end
    at = at + 1
  end
  for _ = 1, #filled do
    if not f[at] or f[at] == '' then return nil end
    at = at + 1
  end
  return call('HSTRLEN', read[1], empty) == 0 and f
end

local move, finish = mover(form, tasks, groups, who)
local others, late = {}, false
for i = 1, #found, 2 do
  late = late or i % 32 == 31 and spent(2)
  local f = not late and fitting(found[i])
  if f then
    move(found[i], f[1], not_before(now, f[3]), f[2], 0)
  elseif not string.match(found[i], '^%d+$') then
    call('ZREM', due, found[i])
  else
    others[#others + 1] = found[i] .. ' ' .. found[i + 1]
  end
end
local moved = finish(left, entered, due, left, 5)

table.insert(others, 1, string.format('%.0f', moved))
answer = table.concat(others, '\n')
remember(slot, sequence, answer)
return answer
