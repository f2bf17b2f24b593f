-- plain: the fast path of move.lua, for tasks without anything special. Go says whether the form allows it: the moves
-- happen now, and need no fence, place or unique key. If a task of the call is special, the script goes on with
-- move.lua, which uses what this path has read.

local answer = answered()
if answer then return answer end
local seen -- the replies of HMGET, by the number of the move

if ARGV[6] ~= '' then
  local due, left, entered, other = KEYS[2], KEYS[3], KEYS[4], KEYS[5]
  local wrong = not_sorted(due) or not_sorted(left) or not_sorted(entered) or other ~= entered and not_sorted(other)
  if wrong then return wrong end

  local tasks, groups, form = ARGV[3], ARGV[4], ARGV[6] + 0
  local from, round, _, _, code, _, _, look, note, _, _, size, claim, _, limit, _, span, _, _, _, stamped, owned,
    n_read, n_write, n_stamps = unpack(ARGV, form, form + 24)
  local first = form + 26 + n_read + n_write + n_stamps
  local read = { unpack(ARGV, form + 25, form + 24 + n_read) }
  local write = { unpack(ARGV, form + 25 + n_read, form + 24 + n_read + n_write) }
  local total, plain = (#ARGV - first + 1) / size, true
  local ids, logs, n = {}, {}, 0
  seen = {}
  claim = claim ~= '' and claim - 1
  while n < total and (n % 16 > 0 or n == 0 or not spent(1)) do
    local at = first + n * size
    local id = ARGV[at]
    read[1] = tasks .. id
    local f = try('HMGET', unpack(read)) -- an error reply if the key is not a hash
    local log, entered_at, started = f[3], f[4], f[7]
    n = n + 1
    seen[n] = f
    -- Texts of times have the same length, so they can be compared.
    if f[1] ~= from or f[2] ~= round or f[6] or f[8] or claim and f[5] ~= ARGV[at + claim] or not log or log == ''
      or #log > 2000 or not entered_at or entered_at > now_text or #entered_at ~= #now_text
      or started and (started > now_text or #started ~= #now_text)
      or span ~= '' and ARGV[at - 1 + span] > now_text then
      plain = false
      break
    end
    ids[n], logs[n] = id, log
  end
  if plain and ARGV[7] ~= '0' and n > 0 then -- the tasks are finished, and may be in the list `archived`
    local scores = call('ZMSCORE', other, unpack(ids))
    for i = 1, n do plain = plain and not scores[i] end
  end

  if plain then -- the script writes
    if limit ~= '' then limiting.use(due) end
    for i = 1, n_stamps + 0 do write[stamped + 2 * i] = now_text end
    local line, entries, own = '\n' .. now_text .. ' ' .. ARGV[5] .. ': ' .. note, {}, 1 - owned / 2
    for i = 1, n do
      if i % 16 == 1 and i > 1 and spent(2) then
        for k = i, n do ids[k] = nil end
        n = i - 1
        break
      end
      local id, at = ids[i], first + (i - 1) * size
      write[1], write[3] = tasks .. id, logs[i] .. line
      for j = owned + 2, n_write + 0, 2 do write[j] = ARGV[at + own + j / 2] end
      if span ~= '' then
        local least, most = ARGV[at - 1 + span], ARGV[at + span]
        if most > now_text then most = now_text end
        write[stamped + 2] = most > least and most or least
      end
      call('HSET', unpack(write))
      entries[2 * i - 1], entries[2 * i] = now_text, id
      if ARGV[at + 1] ~= '' then enter_indexes(groups, ARGV[at + 1], code, id) end
      if limit ~= '' then limiting.count(ARGV[at - 1 + limit], id, false) end
    end
    bulk('ZREM', left, ids)
    bulk('ZADD', entered, entries)
    if look == '' then bulk('ZADD', due, entries) else bulk('ZREM', due, ids) end
    finish_indexes()
    wake_for_groups(groups)
    if from == 'running' then sources.note_starts(beside(groups, ''), ids, round) end
    if limit ~= '' then limiting.finish() end
    for i = 6, #KEYS do wake(KEYS[i], n) end
    answer = string.sub(string.rep('\n+', n) .. string.rep('\n~', total - n), 2)
    remember(answer)
    return answer
  end
end
