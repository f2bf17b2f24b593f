-- claimplain: the fast path of claim.lua, for workers that want all tasks of the list `open`, while no task has a place
-- and nothing is paused. If one of the tasks needs a decision, for example because it is overdue, the script goes on
-- with claim.lua, which uses what this path has read.

local before = answered()
if before and before.err then return before end -- a later call was answered
local version, wrong, size = call('HGET', KEYS[8], 'version') or ''
if not before then
  wrong, size = not_sorted(open)
  wrong = wrong or not_sorted(due)
  if wrong then return wrong end
end
local seen = {} -- the replies of HMGET, by the id of the task

if ARGV[18] == '1' and version == '' and not before then
  local named = { '', unpack(properties, 1, PREFETCHED) } -- without those that need a place
  prefetch(size)
  local page = call('ZRANGE', open, 0, wanted, 'WITHSCORES')
  local n, plain, more, next_due = #page / 2, true, false, INF
  while n > 0 and plain do
    local at = tonumber(page[2 * n])
    if at and at <= now then break end
    n, plain, next_due = n - 1, at, at -- the embedded Redis prints scores that its tonumber cannot read
  end
  if n >= wanted then n, next_due = wanted, INF end
  begin()
  for i = 1, n do
    if not plain then break end
    if bytes <= 0 or i % 16 == 0 and spent(1) then
      n, more = i - 1, true
      break
    end
    local id = page[2 * i - 1]
    named[1] = tasks .. id
    local f = try('HMGET', unpack(named)) -- an error reply if the key is not a hash
    seen[id] = f
    local round, start_after, end_before, timeout = f[2], f[3], INF, INF
    if f[4] ~= 'inf' then end_before = tonumber(f[4]) or 0 end
    if f[5] ~= 'inf' then timeout = tonumber(f[5]) or -1 end
    -- These are single conditions, because the embedded Redis computed one long expression wrong.
    if f[1] ~= 'open' or f[NOT_ON] then plain = false end
    if round ~= '0' and round_of(round) ~= round then plain = false end
    if start_after ~= '0' and (tonumber(start_after) or INF) > now then plain = false end
    if plain and i > needed and not may_prefetch(f, timeout) then
      n, more = i - 1, true
      break
    end
    if end_before > now and timeout >= 0 and plain then -- false for NaN
      choose(id, f, end_before, timeout)
    else
      plain = false
    end
  end

  if plain then -- the script writes
    wrong = write_lists()
    if wrong then return wrong end
    write_hashes()
    bulk('ZREM', open, ids)
    if n > 0 and size > n then wake(KEYS[7], 1) end
    remember(table.concat(ids, ' '))
    return { now_text, next_due < INF and text(next_due) or '', {}, chosen, more and '1' or '', '0', { n }, {}, {} }
  end
end
