-- claim: hands open tasks to a worker, beginning with the tasks that have been due for the longest time.
--
-- - from-state: open
-- - to-state: running, with a claim id and a lease
--
-- KEYS:
--  1. calls of this client
--  2. due
--  3. running
--  4. servers
--  5. leap
-- - from 6 on: pairs of an open list and its wake list, in the worker's order of preference
--
-- ARGV:
--  1. call slot
--  2. sequence number
--  3. prefix of task keys
--  4. prefix of group keys
--  5. code of the state running in a group's index
--  6. worker
--  7. maximum number of tasks
--  8. lease in seconds
--  9. random part of the claim ids
-- 10. approximate limit for the bytes of inputs, sources and metas
-- 11. name of the set of programs to avoid, or '' to start at the head of the lists
-- 12. number of seconds after a deadline; until then, the worker itself reports the time-out
-- 13. number of seconds after which a server without a heartbeat counts as absent
-- 14. prefix of the keys of positions (see below)
-- 15. the number of programs to avoid, and these programs
-- - the names of the properties that the worker needs
--
-- The first properties are state, round, start_after, end_before, timeout, group, log, program, input, not_on, source
-- and meta.
--
-- Returns a list of six elements:
--  1. the time now
--  2. the time when the next task becomes due, or ''
--  3. the list of the ids of overdue tasks
--  4. the list of the claimed tasks; each is { id, claim id, values of the properties }, without the log
--  5. '1' if the lists may have more due tasks, or ''
--  6. the number of due tasks that the worker does not want
--
-- A task is overdue when its end_before is past. The client decides about the overdue tasks that the script returns. If
-- the clock may have leapt, the script returns no overdue tasks, and the server decides about them (see the function
-- trusted). The script delays an invalid task and adds it to `due`, so that the server decides about the task. If an id
-- has no hash, the script removes the id from its list. A repeated call returns the same tasks as the first call.
--
-- A claim reads a limited number of tasks. At the head of a list, there may be many tasks that a worker does not want.
-- A position is the place after these tasks: the next claim continues there. All workers that avoid the same programs
-- share a position. If a worker meets a task that must not run on that worker, the worker gets a position of its own.
-- After PASSED_FOR seconds, a claim starts at the head again.

local call, due, running = redis.call, KEYS[2], KEYS[3]
local FIRST_PAIR = 6
local slot, sequence, tasks, groups, code = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4], tonumber(ARGV[5])
local worker, wanted, lease, random = ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8]), ARGV[9]
local bytes, unwanted_name = tonumber(ARGV[10]), ARGV[11]
local margin, absence, passed, unwanted = tonumber(ARGV[12]), tonumber(ARGV[13]), ARGV[14], tonumber(ARGV[15])
local LOG, INPUT, NOT_ON, SOURCE, META = 7, 9, 10, 11, 12
local MOST_LOOKED_AT, MOST_IN_THE_WAY, PAGE = 1000, 300, 100
local PASSED_FOR = 60

local avoid, properties = {}, {}
for i = 16, 15 + unwanted do avoid[ARGV[i]] = true end
for i = 16 + unwanted, #ARGV do properties[#properties + 1] = ARGV[i] end

local function reply_of(id, claim, f)
  f[LOG] = ''
  return { id, claim, f }
end

local function read(id)
  local f = redis.pcall('HMGET', tasks .. id, unpack(properties)) -- an error reply if the key is not a hash
  if f[2] == '' then f[2] = '0' end -- like the rules in Go, read an empty round as 0
  return f
end

local before, stale = answered(slot, sequence)
if stale then return stale end
if before then
  local again, i = {}, 0
  for id in string.gmatch(before, '%S+') do
    i = i + 1
    local f = read(id)
    local claim = random .. '.' .. i
    if f[1] == 'running' and call('HGET', tasks .. id, (f[2] or '0') .. ':claim') == claim then
      again[#again + 1] = reply_of(id, claim, f)
    end
  end
  return { text(now), '', {}, again, '', '0' }
end

-- The first part of the script reads and decides.

local wrong = not_sorted(due) or not_sorted(running)
if wrong then return wrong end

local chosen, in_the_way, gone, later, odd = {}, {}, {}, {}, {}
local avoided, looked_at, more = 0, 0, false
local picky = unwanted > 0 -- read a task's program first, because reading the other properties costs more
local ID, FIELDS, LIST, DEADLINE, LOOK, GROUP = 1, 2, 3, 4, 5, 6 -- indexes in an element of `chosen`

-- Each line of the property not_on is the name of a worker.
local function not_here(names)
  return names and string.find('\n' .. names .. '\n', '\n' .. worker .. '\n', 1, true)
end

local function choose(list, id, f, end_before, timeout)
  bytes = bytes - #(f[INPUT] or '') - #(f[SOURCE] or '') - #(f[META] or '')
  local over = now + timeout
  chosen[#chosen + 1] = {
    id, f, list, math.min(end_before, over), math.min(end_before, over + margin), group_index(groups, f[6], id),
  }
end

-- Returns whether the script may trust the clock when it decides that a task is overdue. If a server sees a leap of the
-- clock, it writes the leap to `leap` before its next heartbeat. So after a recent heartbeat, `leap` shows whether the
-- clock has leapt. If no server has ever sent a heartbeat, the script has nothing to check the clock against, and
-- trusts it.
local trust
local function trusted()
  if trust == nil then
    -- A reply is an error if its key has a wrong type.
    local seen = redis.pcall('ZREVRANGE', KEYS[4], 0, 0, 'WITHSCORES')[2]
    local till = redis.pcall('HGET', KEYS[5], 'until')
    local over = type(till) ~= 'string' or now >= (number(till, 0) or 0)
    trust = not seen or over and math.abs(now - score_of(seen)) < absence
  end
  return trust
end

-- Decides whether the worker gets a task. Returns 'avoided' if the worker avoids the task's program. Returns
-- 'elsewhere' if the worker must not get the task now, for another reason. In both cases, the task stays in the list.
local function consider(list, id)
  if picky then
    local f = redis.pcall('HMGET', tasks .. id, 'program', 'not_on')
    if avoid[f[1]] then return 'avoided' end
    if not_here(f[2]) then return 'elsewhere' end
  end
  local f = read(id)
  if not f[1] then
    gone[#gone + 1] = { list, id }
    return
  end
  local start_after, end_before, timeout = number(f[3], 0), number(f[4], INF), number(f[5], INF)
  local sound = start_after and end_before and timeout and round_of(f[2]) == (f[2] or '0')
  if f[1] ~= 'open' or not sound then
    odd[#odd + 1] = { list, id }
  elseif end_before <= now then
    if not trusted() then return 'elsewhere' end
    in_the_way[#in_the_way + 1] = id
  elseif start_after > now then
    later[#later + 1] = { list, id, start_after }
  elseif not_here(f[NOT_ON]) then
    picky = true
    return 'elsewhere'
  else
    choose(list, id, f, end_before, timeout)
  end
end

-- A position is stored as 'began score id'. The first part is the time of the call that began at the head of the list.
-- The third part is the id of the last task that a call skipped. The second part is the score of this task in the list.

local function position(key)
  local at = unwanted_name ~= '' and redis.pcall('GET', key)
  if type(at) ~= 'string' then return nil end
  local began, score, id = string.match(at, '^(%S+) (%S+) (%S+)$')
  began = tonumber(began)
  if began and score_of(score) and began <= now and now - began <= PASSED_FOR then
    return { began = began, score = score, id = id }
  end
end

local function rank_after(key, at)
  if not at then return 0 end
  local score = call('ZSCORE', key, at.id)
  if score and score_of(score) == score_of(at.score) then return call('ZRANK', key, at.id) + 1 end
  return call('ZCOUNT', key, '-inf', '(' .. at.score)
end

local function full()
  return #chosen >= wanted or bytes <= 0 or #in_the_way >= MOST_IN_THE_WAY
end

-- Chooses tasks from one list, beginning at a rank. Returns two entries of the list. All workers that avoid the same
-- programs can skip the tasks up to the first entry. This worker can skip the tasks up to the second entry.
local function look_through(k, rank)
  local page, all, mine, shared = math.max(1, math.min(wanted, PAGE)), nil, nil, true
  while true do
    local found = call('ZRANGE', KEYS[k], rank, rank + page - 1, 'WITHSCORES')
    for i = 1, #found, 2 do
      if score_of(found[i + 1]) > now then return all, mine end
      if full() then
        more = #chosen < wanted
        return all, mine
      end
      if looked_at >= MOST_LOOKED_AT or looked_at % 16 == 15 and spent(1) then
        more = true
        return all, mine
      end
      looked_at = looked_at + 1
      local why = consider(k, found[i])
      if why then
        avoided, shared = avoided + 1, shared and why == 'avoided'
        mine = { score = found[i + 1], id = found[i] }
        if shared then all = mine end
      end
    end
    if #found < 2 * page or #chosen >= wanted then return all, mine end
    rank, page = rank + page, PAGE
  end
end

local positions = {} -- keys and values in turn

local function keep(key, began, at)
  local n = #positions
  positions[n + 1], positions[n + 2] = key, string.format('%.6f %s %s', began, at.score, at.id)
end

local function look_in(k)
  local shared = passed .. unwanted_name .. ':' .. KEYS[k]
  local own = passed .. unwanted_name .. '@' .. worker .. ':' .. KEYS[k]
  local of_all, of_mine = position(shared), position(own)
  local rank, rank_of_mine = rank_after(KEYS[k], of_all), rank_after(KEYS[k], of_mine)
  local at_mine = rank_of_mine > rank
  local from = at_mine and of_mine or rank > 0 and of_all
  local all, mine = look_through(k, at_mine and rank_of_mine or rank)
  if unwanted_name == '' then return end
  local began = from and from.began or now
  if all and not at_mine then keep(shared, began, all) end
  if mine and (at_mine or mine ~= all) then keep(own, began, mine) end
end

local size = {} -- sizes of the open lists, by the index of the list in KEYS
for k = FIRST_PAIR, #KEYS, 2 do
  wrong, size[k] = not_sorted(KEYS[k])
  if wrong then return wrong end
  if not full() and not more then look_in(k) end
end

-- From here on, the script writes.

for _, g in ipairs(gone) do call('ZREM', KEYS[g[1]], g[2]) end
for _, l in ipairs(later) do call('ZADD', KEYS[l[1]], text(l[3]), l[2]) end
for _, o in ipairs(odd) do -- an invalid task: the server decides about it during the delay
  call('ZADD', KEYS[o[1]], text(now + 5), o[2])
  call('ZADD', due, text(now), o[2])
end

for i = 1, #positions, 2 do call('SET', positions[i], positions[i + 1], 'EX', 2 * PASSED_FOR) end

local out, removed, entered, looks, ids = {}, {}, {}, {}, {}
for k = FIRST_PAIR, #KEYS, 2 do removed[k] = {} end
local lease_until = now + lease
local lease_text = text(lease_until)
local write = {
  '', 'state', 'running', 'lease_until', lease_text, 'deadline', '', 'log', '',
  '', now_text, '', worker, '', '', -- properties of the round: running, worker and claim
}
for i, c in ipairs(chosen) do
  local id, f, deadline = c[ID], c[FIELDS], c[DEADLINE]
  local claim, of = random .. '.' .. i, (f[2] or '0') .. ':'
  write[1], write[7], write[9] = tasks .. id, text(deadline), logged(f[LOG], now_text, worker, 'running')
  write[10], write[12], write[14], write[15] = of .. 'running', of .. 'worker', of .. 'claim', claim
  call('HSET', unpack(write))
  if c[GROUP] then call('ZADD', c[GROUP], place(code, id), id) end
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
for k = FIRST_PAIR, #KEYS, 2 do
  bulk('ZREM', KEYS[k], removed[k])
  if #chosen < wanted then
    local left = call('ZRANGEBYSCORE', KEYS[k], '(' .. now_text, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
    if left[2] then next_due = math.min(next_due, score_of(left[2])) end
  end
  -- Wake another worker: it may want the other due tasks, or the tasks that this worker did not want.
  if #chosen + avoided > 0 and size[k] > #removed[k] then wake(KEYS[k + 1], 1) end
end

remember(slot, sequence, table.concat(ids, ' '))
return { now_text, next_due < INF and text(next_due) or '', in_the_way, out, more and '1' or '', tostring(avoided) }
