-- settle: makes the same move for each due task that fits a pattern. The rules in Go decide the move, once for all of
-- these tasks. The server settles the other due tasks one by one.
--
-- from-state: executed; to-state: succeeded
--
-- KEYS: calls of this client, due, the list that the tasks leave, the list that they enter, and the wake lists of the
-- components that wait for tasks in the list that they enter
--
-- ARGV; a number is the index of the first argument in its line:
--  1. call slot, sequence number, prefixes of the keys of tasks and of groups
--  5. name of the server, for the logs of the tasks; the highest score and the maximum number of due tasks to look at
--  8. code of the state that the tasks enter in a group's index, note for the log
-- - the numbers of the arguments of HMGET and of HSET, of properties whose value is the time, of properties with a
--   required value, without a value, and with any value, and of variants
-- - the arguments of HMGET: an empty key, log, group, the time of the state that the form leaves, the properties of the
--   pattern in the order of these numbers, the property that distinguishes the variants, queue, and the text
-- - the arguments of HSET; the key, the log and times are empty, and the properties with times are the last ones
-- - the required values
-- - for each variant, the value of the property, or '' if it must be missing, and '1' if the text must be empty, or ''
--
-- Returns the number of moved tasks, a line '=number queue' for those with each value of the property queue, and a line
-- 'id score' for each other due task. If the call takes too long, the script does not move the last tasks, and returns
-- lines for them. It also returns lines for tasks with a long log. The script removes members of due that are not ids.
--
-- Most texts are empty, so the script reads the texts with the other properties. If they are long, it reads their
-- lengths instead.

local due, left, entered = KEYS[2], KEYS[3], KEYS[4]
local tasks, groups, who, till, most, code, note, n_read, n_write, n_stamps, n_equal, n_missing, n_filled, n_variants =
  unpack(ARGV, 3, 16)
local answer = answered()
if answer then return answer end

local present = call('ZRANGEBYSCORE', due, '-inf', till, 'WITHSCORES', 'LIMIT', 0, most)
if #present == 0 then
  if ARGV[2] % 100 == 0 then remember('0') end -- to renew the expiry of the stored answers
  return '0'
end
local wrong = not_sorted(left) or not_sorted(entered)
if wrong then return wrong end

-- Read and check.

local at = 17 + n_read
local read, write = { unpack(ARGV, 17, at - 1) }, { unpack(ARGV, at, at + n_write - 1) }
at = at + n_write
local want = { unpack(ARGV, at, at + n_equal - 1) } -- a value, false for a missing one, or true for any value
for _ = 1, n_missing + 0 do want[#want + 1] = false end
for _ = 1, n_filled + 0 do want[#want + 1] = true end
at = at + n_equal
local variants = {}
for i = at, at + 2 * n_variants - 1, 2 do variants[ARGV[i]] = ARGV[i + 1] end

local n_want, n_names, room = #want, #read, 65536 -- the room is the number of bytes of texts that the script reads

-- Returns the values of a task if it fits the pattern, or nil.
local function fitting(key)
  read[1] = key
  local f = try('HMGET', unpack(read, 1, n_names)) -- an error reply if the key is not a hash
  for i = 1, n_want do
    local w, v = want[i], f[3 + i]
    if v ~= w and (w ~= true or not v or v == '') then return nil end
  end
  local log, at_text, value, long = f[1], f[3], f[4 + n_want], f[6 + n_want] -- long is nil if it was not read
  if long then
    room = room - #long
    if room < 0 then n_names = #read - 1 end
  end
  local empty = value ~= '' and variants[value or '']
  if not empty or empty == '1' and (long and long ~= '' or long == nil and call('HSTRLEN', key, read[#read]) > 0) then
    return nil
  end
  local sound = at_text and #at_text == #now_text and string.match(at_text, '^[1-9]%d*%.%d+$')
  return sound and log and log ~= '' and #log <= 2000 and f or nil
end

local ids, logs, indexed, times, others, foreign, late, n = {}, {}, {}, {}, {}, {}, false, 0
local of_queue = {}
for i = 1, #present, 2 do
  local id = present[i]
  late = late or i % 32 == 31 and spent(2)
  if not string.match(id, '^[1-9]%d*$') or #id > 18 then
    foreign[#foreign + 1] = id
  else
    local f = not late and fitting(tasks .. id)
    if f then
      n = n + 1
      ids[n], logs[n], indexed[n] = id, f[1], f[2]
      times[n] = f[3] > now_text and f[3] or now_text -- times of the same length, as texts
      local queue = f[5 + n_want]
      if queue and #queue <= 256 and not string.find(queue, '%c') then
        of_queue[queue] = (of_queue[queue] or 0) + 1
        indexed[n] = names_of(f[2], queue)
      end
    else
      others[#others + 1] = '\n' .. id .. ' ' .. present[i + 1]
    end
  end
end

-- From here on, the script writes.
local line, stamped, entries = nil, nil, {}
for i = 1, n do
  local id, time = ids[i], times[i]
  if time ~= stamped then
    stamped, line = time, '\n' .. time .. ' ' .. who .. ': ' .. note
    for j = n_write + 0, n_write - 2 * n_stamps + 2, -2 do write[j] = time end
  end
  write[1], write[3] = tasks .. id, logs[i] .. line
  call('HSET', unpack(write))
  entries[2 * i - 1], entries[2 * i] = time, id
  if indexed[i] then enter_indexes(groups, indexed[i], code, id) end
end
bulk('ZREM', due, foreign)
bulk('ZREM', due, ids)
bulk('ZREM', left, ids)
bulk('ZADD', entered, entries)
finish_indexes()
if n > 0 then
  for i = 5, #KEYS do wake(KEYS[i], n) end
end

for queue, of_it in pairs(of_queue) do others[#others + 1] = string.format('\n=%.0f ', of_it) .. queue end
answer = string.format('%.0f', n) .. table.concat(others)
remember(answer)
return answer
