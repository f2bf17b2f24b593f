-- claim: hands open tasks to a worker, the ones that are due longest first.
--
-- from-state  open
-- to-state    running, under a claim id and with a lease
--
-- KEYS  1 calls of this client   2 due   3 running   4… pairs: an open list and its wake list,
--       in the order in which the worker wants them
-- ARGV  1 slot   2 sequence number   3 prefix of task keys   4 prefix of group keys   5 code of
--       running in the group index   6 worker   7 how many   8 lease in seconds   9 random part
--       of the claim ids   10 how many bytes of inputs, about   11 how many due tasks to pass
--       over   12 seconds that the worker has after its deadline to report that by itself
--       13 n, n programs that the worker does not want, then the properties that it needs; the
--       first of them are state, round, start_after, end_before, timeout, group, log, program,
--       input, not_on
--
-- Returns { now, when the next task becomes due or '', { ids that are in the way }, tasks,
-- how many due tasks to pass over next time, how many were not wanted }, a task being { id, claim id,
-- values of the properties }; the log is left out. In the way are
-- tasks that are past their end_before: the rules decide about them. What makes no sense is
-- put off and made due, for the server to decide. An id without a hash is removed. A repeated
-- call returns what it claimed the first time.

local call, due, running = redis.call, KEYS[2], KEYS[3]
local slot, sequence, tasks, groups, code = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4], tonumber(ARGV[5])
local worker, wanted, lease, random = ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8]), ARGV[9]
local bytes, pass_over = tonumber(ARGV[10]), tonumber(ARGV[11])
local margin, unwanted = tonumber(ARGV[12]), tonumber(ARGV[13])
local LOG, PROGRAM, INPUT, NOT_ON = 7, 8, 9, 10
local MOST_LOOKED_AT = 300

local avoid, properties = {}, {}
for i = 14, 13 + unwanted do avoid[ARGV[i]] = true end
for i = 14 + unwanted, #ARGV do properties[#properties + 1] = ARGV[i] end

local function reply_of(id, claim, f)
  f[LOG] = ''
  return { id, claim, f }
end

local before, stale = answered(slot, sequence)
if stale then return stale end
if before then
  local again, i = {}, 0
  for id in string.gmatch(before, '%S+') do
    i = i + 1
    local f = call('HMGET', tasks .. id, unpack(properties))
    local claim = random .. '.' .. i
    if f[1] == 'running' and call('HGET', tasks .. id, (f[2] or '0') .. ':claim') == claim then
      again[#again + 1] = reply_of(id, claim, f)
    end
  end
  return { text(now), '', {}, again, '0', '0' }
end

-- Reading.

local chosen, in_the_way, gone, later, odd, avoided = {}, {}, {}, {}, {}, 0
local ID, FIELDS, LIST, DEADLINE, LOOK = 1, 2, 3, 4, 5 -- of one that is chosen

-- Workers that a task must not run on stand in lines.
local function unwanted_here(f)
  local names = f[NOT_ON]
  return avoid[f[PROGRAM]] or names and string.find('\n' .. names .. '\n', '\n' .. worker .. '\n', 1, true)
end

local function consider(list, id)
  local f = redis.pcall('HMGET', tasks .. id, unpack(properties)) -- an error: it is no hash
  if not f[1] then
    gone[#gone + 1] = { list, id }
    return
  end
  local start_after, end_before, timeout = number(f[3], 0), number(f[4], INF), number(f[5], INF)
  local sound = start_after and end_before and timeout and round_of(f[2]) == (f[2] or '0')
  if f[1] ~= 'open' or not sound then
    odd[#odd + 1] = { list, id }
  elseif end_before <= now then
    in_the_way[#in_the_way + 1] = id
  elseif start_after > now then
    later[#later + 1] = { list, id, start_after }
  elseif unwanted_here(f) then
    avoided = avoided + 1
  else
    bytes = bytes - #(f[INPUT] or '')
    local over = now + timeout
    chosen[#chosen + 1] = { id, f, list, math.min(end_before, over), math.min(end_before, over + margin) }
  end
end

local go_on = 0
for k = 4, #KEYS, 2 do
  local offset, most = pass_over, pass_over + MOST_LOOKED_AT + wanted
  while #chosen < wanted and bytes > 0 and offset < most do
    local page = math.min(wanted - #chosen + #in_the_way + #odd + avoided, most - offset)
    local ids = call('ZRANGEBYSCORE', KEYS[k], '-inf', text(now), 'LIMIT', offset, page)
    for i = 1, #ids do
      if #chosen < wanted and bytes > 0 then consider(k, ids[i]) end
    end
    offset = offset + #ids
    if #ids < page then break end
    if offset >= most and avoided > 0 and #chosen < wanted then go_on = offset end
  end
end

-- Writing.

for _, g in ipairs(gone) do call('ZREM', KEYS[g[1]], g[2]) end
for _, l in ipairs(later) do call('ZADD', KEYS[l[1]], text(l[3]), l[2]) end
for _, o in ipairs(odd) do -- out of the way for a while, and the server looks at it
  call('ZADD', KEYS[o[1]], text(now + 5), o[2])
  call('ZADD', due, text(now), o[2])
end

local out, removed, entered, looks, ids = {}, {}, {}, {}, {}
for k = 4, #KEYS, 2 do removed[k] = {} end
local lease_until = now + lease
local now_text, lease_text = text(now), text(lease_until)
local write = {
  '', 'state', 'running', 'lease_until', lease_text, 'deadline', '', 'log', '',
  '', now_text, '', worker, '', '', -- the round's stamp, worker and claim
}
for i, c in ipairs(chosen) do
  local id, f, deadline = c[ID], c[FIELDS], c[DEADLINE]
  local claim, of = random .. '.' .. i, (f[2] or '0') .. ':'
  write[1], write[7], write[9] = tasks .. id, text(deadline), logged(f[LOG], now_text, worker, 'running')
  write[10], write[12], write[14], write[15] = of .. 'running', of .. 'worker', of .. 'claim', claim
  call('HSET', unpack(write))
  local group = f[6]
  if group and group ~= '' then call('ZADD', groups .. group, place(code, id), id) end
  local from = removed[c[LIST]]
  from[#from + 1] = id
  entered[2 * i - 1], entered[2 * i] = now_text, id
  looks[2 * i - 1], looks[2 * i] = c[LOOK] < lease_until and text(c[LOOK]) or lease_text, id
  ids[i] = id
  out[i] = reply_of(id, claim, f)
end

bulk('ZADD', running, entered)
bulk('ZADD', due, looks)

local next_due = INF
for k = 4, #KEYS, 2 do
  bulk('ZREM', KEYS[k], removed[k])
  local left = call('ZRANGEBYSCORE', KEYS[k], '(' .. text(now), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  if left[2] then next_due = math.min(next_due, score_of(left[2])) end
  -- What this worker leaves behind, now or to come, is for another one to wait for; so is what it did not
  -- want, and may have been woken for.
  if #chosen + avoided > 0 and call('ZCARD', KEYS[k]) > 0 then
    wake(KEYS[k + 1], 1)
  end
end

remember(slot, sequence, table.concat(ids, ' '))
return { text(now), next_due < INF and text(next_due) or '', in_the_way, out, tostring(go_on), tostring(avoided) }
