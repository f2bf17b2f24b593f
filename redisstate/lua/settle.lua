-- settle: makes the same move for each due task that fits a pattern. The rules in Go decide the move, once for all of
-- these tasks. The server settles the other due tasks one by one.
--
-- - from-state: the state that the form names
-- - to-state: another state, which the form also names
--
-- KEYS:
--  1. calls of this client
--  2. due
--  3. the list that the tasks leave
--  4. the list that the tasks enter
-- - the wake lists of the components that wait for tasks in list 4
--
-- ARGV:
--  1. call slot
--  2. sequence number
--  3. prefix of task keys
--  4. prefix of group keys
--  5. name of the server
--  6. the highest score of a due task
--  7. the maximum number of due tasks to look at
-- - the form (see read_form), without own properties
-- - the number of properties that must have certain values, and these properties with the values
-- - the number of properties that must not be empty, and these properties
-- - the number of properties that must be missing, and these properties
-- - the number of variants, and the variants; the task must fit one of them
--
-- Each variant is:
-- - the number of properties that must have certain values, and these properties with the values
-- - the number of properties that must be missing, and these properties
-- - the name of a property that must be missing or empty, or ''
--
-- Returns the number of moved tasks, and a line 'id score' for each other due task. If the call takes too long, the
-- script does not move the last tasks, and returns lines for them. The script removes members of due that are not ids.

local call = redis.call
local due, left, entered = KEYS[2], KEYS[3], KEYS[4]
local slot, sequence, tasks, groups, who = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4], ARGV[5]
cursor = 7

local answer, stale = answered(slot, sequence)
if answer or stale then return answer or stale end

local found = call('ZRANGEBYSCORE', due, '-inf', ARGV[6], 'WITHSCORES', 'LIMIT', 0, tonumber(ARGV[7]))
if #found == 0 then
  if sequence % 100 == 0 then remember(slot, sequence, '0') end -- to renew the expiry of the stored answers
  return '0'
end
local wrong = not_sorted(left) or not_sorted(entered)
if wrong then return wrong end

-- Read and check.

local form = read_form()
local equal, filled, missing, variants = take_list(2), take_list(1), take_list(1), {}
for i = 1, tonumber(take()) do variants[i] = { equal = take_list(2), missing = take_list(1), empty = take() } end

local read = { '', 'log', 'group', form.round .. ':' .. form.from }
local function position(name) -- returns the index of a property's value in a reply
  read[#read + 1] = name
  return #read - 1
end
local function positions(names, step)
  local at = {}
  for i = 1, #names, step do at[#at + 1] = position(names[i]) end
  return at
end
local at_equal, at_filled, at_missing = positions(equal, 2), positions(filled, 1), positions(missing, 1)
for _, v in ipairs(variants) do v.at_equal, v.at_missing = positions(v.equal, 2), positions(v.missing, 1) end

local function is_equal(f, at, wanted)
  for i, k in ipairs(at) do
    if f[k] ~= wanted[2 * i] then return false end
  end
  return true
end

local function lacks(f, at)
  for _, k in ipairs(at) do
    if f[k] then return false end
  end
  return true
end

local function fits_variant(f, v)
  if not is_equal(f, v.at_equal, v.equal) or not lacks(f, v.at_missing) then return false end
  return v.empty == '' or call('HSTRLEN', read[1], v.empty) == 0
end

-- Returns the values of a task if it fits the pattern, or nil.
local function fitting(id)
  read[1] = tasks .. id
  local f = redis.pcall('HMGET', unpack(read)) -- an error reply if the key is not a hash
  if not is_equal(f, at_equal, equal) or not lacks(f, at_missing) then return nil end
  if not f[3] or not string.match(f[3], '^%d+%.?%d*$') or tonumber(f[3]) <= 0 then return nil end
  for _, k in ipairs(at_filled) do
    if not f[k] or f[k] == '' then return nil end
  end
  for _, v in ipairs(variants) do
    if fits_variant(f, v) then return f end
  end
end

local fit, others, odd, late = {}, {}, {}, false
for i = 1, #found, 2 do
  local id = found[i]
  late = late or i % 32 == 31 and spent(2)
  if not string.match(id, '^[1-9]%d*$') or #id > 18 then
    odd[#odd + 1] = id
  else
    local f = not late and fitting(id)
    if f then
      fit[#fit + 1] = { id, f[1], not_before(now, f[3]), f[2] }
    else
      others[#others + 1] = id .. ' ' .. found[i + 1]
    end
  end
end

-- From here on, the script writes.

bulk('ZREM', due, odd)
local move, finish = mover(form, tasks, groups, who)
for _, m in ipairs(fit) do move(m[1], m[2], m[3], m[4], 0) end
finish(left, entered, due, left, 5)

table.insert(others, 1, string.format('%.0f', #fit))
answer = table.concat(others, '\n')
remember(slot, sequence, answer)
return answer
