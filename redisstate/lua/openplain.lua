-- openplain: the fast path of open.lua, for tasks that are due now and have no group, place or end_before, if the
-- number of tasks has no limit. If the next ids are taken, the counter is no number, or Redis may have forgotten ids,
-- the script goes on with open.lua.

if ARGV[9] ~= '' and ARGV[3] == '' and ARGV[8] == '' then
  local answer = answered()
  if answer then return answer end
  local counter, tasks, open_list = KEYS[3], ARGV[4], KEYS[4]

  -- The arguments are those of open.lua: the shared properties begin at 11, and the values of the tasks behind `from`.
  local names = 11 + 2 * ARGV[10]
  local n_names = ARGV[names] + 0
  local from = names + n_names + 1
  local n = ARGV[from] + 0
  local last = try('INCRBY', counter, n) -- an error reply if the counter is no number
  local sound = type(last) == 'number' and last > n and last - n >= ARGV[#ARGV] + 0 and last < IDS_END
  local keys = {}
  if sound then
    for i = 1, n do keys[i] = tasks .. last - n + i end
    sound = call('EXISTS', unpack(keys)) == 0
  end

  local opened, time = {}, now_text
  for i = 1, sound and n or 0 do
    if i > 1 then time = string.format('%.6f', now + (i - 1) / 1000000) end -- so that the tasks keep their order
    opened[2 * i - 1], opened[2 * i] = time, '' .. last - n + i
  end
  local wrong = bulk('ZADD', open_list, opened, try) -- then the script has written nothing else
  if wrong then
    call('DECRBY', counter, n)
    return not_sorted(open_list) or wrong
  end

  if sound then -- the script writes the tasks
    local line = ' ' .. ARGV[7] .. ': open'
    local h = new_task(unpack(ARGV, 11, names - 1))
    local named = #h
    for j = 1, n_names do h[named + 2 * j - 1], h[named + 2 * j] = ARGV[names + j], '' end
    for i = 1, n do
      h[1], h[3], h[5], h[7] = keys[i], opened[2 * i - 1] .. line, opened[2 * i - 1], opened[2 * i]
      for j = 1, n_names do h[named + 2 * j] = ARGV[from + j] end
      from = from + n_names
      call('HSET', unpack(h))
    end
    wake(KEYS[5], n)
    answer = '+' .. last - n + 1
    remember(answer)
    return answer
  end
  if type(last) == 'number' then call('DECRBY', counter, n) end
end
