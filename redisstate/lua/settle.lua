-- settle: makes the same move for each due task that fits a pattern. The rules in Go decide the move, once for all of
-- these tasks. The server settles the other due tasks one by one.
--
-- - from-state: the state that the form names
-- - to-state: another state, which the form also names
--
-- KEYS, after those of moving.lua:
--  3. the list that the tasks leave
--  4. the list that the tasks enter
-- - the wake lists of the components that wait for tasks in list 4
--
-- ARGV, after those of moving.lua:
--  6. the highest score of a due task
--  7. the maximum number of due tasks to look at
-- - the form (see moving.lua), without own properties
-- - the number of arguments of HMGET, and these arguments: an empty key, log, group, the time of the state that the
--   form leaves, and the properties of the pattern in its order
-- - the pattern
-- - the number of properties that must not be empty
-- - the number of variants, and for each a pattern, and the name of a property that must be missing or empty, or ''.
--   The task must fit one of them
--
-- A pattern is:
-- - the number of properties that must have certain values, and these values
-- - the number of properties that must be missing
--
-- Returns the number of moved tasks, and a line 'id score' for each other due task. If the call takes too long, the
-- script does not move the last tasks, and returns lines for them. The script removes members of due that are not ids.

local left, entered = KEYS[3], KEYS[4]
cursor = 7

local present = redis.call('ZRANGEBYSCORE', due, '-inf', ARGV[6], 'WITHSCORES', 'LIMIT', 0, tonumber(ARGV[7]))
if #present == 0 then
  if ARGV[2] % 100 == 0 then remember('0') end -- to renew the expiry of the stored answers
  return '0'
end
local wrong = not_sorted(left) or not_sorted(entered)
if wrong then return wrong end

-- Read and check.

local form, read = read_form(), take_list(1)

local checked = 3 -- the index in a reply of the last property that no pattern has had
local function take_pattern()
  local p = { first = checked, equal = take_list(1), missing = tonumber(take()) }
  checked = checked + #p.equal + p.missing
  return p
end

local usual, n_filled, variants = take_pattern(), tonumber(take()), {}
local filled = checked
checked = checked + n_filled
for i = 1, tonumber(take()) do
  variants[i] = take_pattern()
  variants[i].empty = take()
end

local function fits(f, p)
  local equal, first = p.equal, p.first
  local n = #equal
  for i = 1, n do
    if f[first + i] ~= equal[i] then return false end
  end
  for i = first + n + 1, first + n + p.missing do
    if f[i] then return false end
  end
  return true
end

-- Returns the values of a task if it fits the pattern, or nil.
local function fitting(id)
  read[1] = tasks .. id
  local f = redis.pcall('HMGET', unpack(read)) -- an error reply if the key is not a hash
  if not fits(f, usual) then return nil end
  if not f[3] or not string.match(f[3], '^%d+%.?%d*$') or tonumber(f[3]) <= 0 then return nil end
  for i = filled + 1, filled + n_filled do
    if not f[i] or f[i] == '' then return nil end
  end
  for i = 1, #variants do
    local v = variants[i]
    if fits(f, v) and (v.empty == '' or redis.call('HSTRLEN', read[1], v.empty) == 0) then return f end
  end
end

local fit, of_group, others, late = {}, {}, {}, false
for i = 1, #present, 2 do
  local id = present[i]
  late = late or i % 32 == 31 and spent(2)
  if not string.match(id, '^[1-9]%d*$') or #id > 18 then
    forgotten[#forgotten + 1] = id
  else
    local f = not late and fitting(id)
    if f then
      local k = #fit + 1
      fit[k], logs[k], times[k], of_group[k] = id, f[1], not_before(now, f[3]), f[2]
    else
      others[#others + 1] = id .. ' ' .. present[i + 1]
    end
  end
end

-- From here on, the script writes.

form.left, form.entered = into(remove, left), into(add, entered)
for k, id in ipairs(fit) do move(form, k, id, of_group[k] or '') end
finish_moves()
if #fit > 0 then
  for i = 5, #KEYS do wake(KEYS[i], #fit) end
end

table.insert(others, 1, string.format('%.0f', #fit))
local answer = table.concat(others, '\n')
remember(answer)
return answer
