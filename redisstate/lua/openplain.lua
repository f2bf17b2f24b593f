-- openplain: the fast path of open.lua, for tasks that are due now and have no group, place or end_before, if the
-- number of tasks has no limit. If the next ids are taken, the counter is no number, Redis may have forgotten ids, or
-- the list has a wrong type, the script goes on with open.lua.

if ARGV[6] ~= '' and ARGV[4] == '' then
  local answer = answered()
  if answer then return answer end
  local counter, open_list = KEYS[2], KEYS[3]
  local tasks = string.sub(open_list, 1, -1 - #'open') .. 'task:'

  -- The arguments are those of open.lua: the shared properties begin at 7, and the values of the tasks behind `from`.
  local names = 7 + ARGV[6]
  local n_names = ARGV[names] + 0
  local from = names + n_names + 1
  local n = ARGV[from] + 0
  local last = try('INCRBY', counter, ARGV[from]) -- an error reply if the counter is no number
  local sound = type(last) == 'number' and last > n and last - n >= ARGV[3] + 0 and last < IDS_END

  local keys, opened, time = {}, {}, now_text -- the times differ, so that the tasks keep their order
  for i = 1, sound and n or 0 do
    if i > 1 then time = string.format('%.6f', clock[1] + (clock[2] + i - 1) / 1000000) end
    local id = '' .. last - n + i
    keys[i], opened[2 * i - 1], opened[2 * i] = tasks .. id, time, id
  end
  sound = sound and call('EXISTS', unpack(keys)) == 0
  sound = sound and type(try('ZADD', open_list, unpack(opened))) == 'number' -- if not, it has written nothing else

  if sound then -- the script writes the tasks
    local h, end_of_h = ARGV, names - 1
    if n_names > 0 then h = { unpack(ARGV, 1, end_of_h) } end
    for j = 1, n_names do h[end_of_h + 2 * j - 1] = ARGV[names + j] end
    for i = 1, n do
      for j = 1, n_names do h[end_of_h + 2 * j] = ARGV[from + j] end
      from = from + n_names
      write_task(keys[i], opened[2 * i - 1], ARGV[5], opened[2 * i], unpack(h, 7, end_of_h + 2 * n_names))
    end
    wake(KEYS[4], n)
    answer = '+' .. opened[2]
    remember(answer)
    return answer
  end
  if type(last) == 'number' then call('DECRBY', counter, n) end
end
