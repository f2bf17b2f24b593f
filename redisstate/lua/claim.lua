-- claim: hands open tasks to a worker. It serves the worker's queues in order, and in each queue the tasks in the order
-- of ordering.lua.
--
-- from-state: open; to-state: running, with a claim id and a lease
--
-- Callers: redisstate/claimcall.go, and redisstate/turn.go, which sends it together with move.lua
--
-- KEYS: calls of this client, due, running, open, paused, workers, and the hash of what the worker serves
--
-- ARGV; a number is the index of the first argument in its line:
--  1. call slot, sequence number, prefixes of the keys of tasks and of groups
--  5. code of the state running in a group's index, worker, maximum number of tasks, lease in seconds
--  9. random part of the claim ids, approximate limit for the bytes of inputs, sources, metas and blobs
-- 11. number of seconds after a deadline; until then, the worker itself reports the time-out
-- 12. '1' if the worker claims from the list `open`, or ''; the largest number of further tasks that it prefetches
-- 14. the seconds for which it still runs or ''; '1' to claim although there are requirements that Go has not seen
-- - the number of properties that the worker needs, and their names
-- - the group of the tasks that the worker claims, as in the name of a set, or '' for all groups
-- - the arguments of fitting.lua: what the worker has free
-- - the number of queues that the worker serves, and their names
--
-- The first properties are state, round, start_after, end_before, timeout, group, log, program, input, not_on, source,
-- meta and blobs. The last properties are 0:prefetched, fetch, claim_before, limit_key, input_encoding and resources.
-- The script reads the last five only if the task has a place (see places.lua), because each task with one of them has
-- one.
--
-- Returns a list of eight elements, whose names in Go are those of the constants claimReply… in redisstate/claim.go:
--  1. the time now, the time when the next task becomes due or '', the list of the ids of overdue tasks
--  4. the list of the claimed tasks; each is { id, claim id, values of the properties }, without the log
--  5. 'kept' if the worker is kept for a task, '1' if the lists may have more due tasks, or ''
--  6. the number of due tasks that the worker does not want; for each queue the number of claimed tasks, -1 if paused
--  8. the number of the last requirement that Go has seen, if there are newer ones, or ''. Without argument 15, the
--     script has then claimed nothing.
--
-- A task is overdue when its end_before or its claim_before is past. The claim passes it, and the client decides about
-- it. The server decides about invalid tasks, which the script delays. The script makes tasks wait that may not start
-- because of a limit, a pause or a held source. A repeated call returns the same tasks as the first call.

local due, running, open = KEYS[2], KEYS[3], KEYS[4]
local tasks, groups, code, worker, wanted, lease, random = unpack(ARGV, 3, 9)
local bytes, margin, plain, anyway = ARGV[10] + 0, ARGV[11], ARGV[12] == '1', ARGV[15]
local lease_until, lease_text = now + lease, text(now + lease)
local MOST_LOOKED_AT = 1000
local prefix = string.sub(open, 1, -1 - #'open')
local returned = prefix .. 'returned:'

cursor = 15
local properties, group = take_list(1), take()
fitting.use()
local queues = take_list(1)
local n_named = #properties
local LOG, INPUT, NOT_ON, SOURCE, META, BLOBS = 7, 9, 10, 11, 12, 13 -- indexes of properties
local PREFETCHED, CLAIM_BEFORE, LIMIT_KEY, PLACE = n_named - 5, n_named - 3, n_named - 2, n_named + 1
properties[PLACE] = 'place'

local before = answered()
if before and before.err then return before end -- a later call was answered

local function answer(fields)
  local reply = { now_text, '', {}, {}, '', '0', {}, '' }
  for i, value in pairs(fields) do reply[i] = value end
  return reply
end

if before then
  local again = {}
  for id in string.gmatch(before, '%S+') do
    local f, claim = try('HMGET', tasks .. id, unpack(properties, 1, n_named)), random .. '.' .. id
    if f[1] == 'running' and call('HGET', tasks .. id, (f[2] or '0') .. ':claim') == claim then
      f[LOG] = ''
      again[#again + 1] = { id, claim, f }
    end
  end
  return answer({ [4] = again })
end

local wrong, size = not_sorted(open)
wrong = wrong or not_sorted(due)
if wrong then return wrong end

use_places(open)
local last = try('ZREVRANGE', requirements, 0, 0, 'WITHSCORES')[2]
local upto = last and call('HGET', KEYS[7], 'upto') or '0'
local newer = last and (tonumber(upto) or 0) < tonumber(last)
if newer and anyway ~= '1' then return answer({ [5] = '1', [8] = upto }) end

-- Up to the first call of bulk, the script only reads and decides.

-- A worker with short runs asks for more tasks than it has free slots, and prefetches the others (docs/lifecycle.md,
-- "Prefetched tasks"). The first `needed` tasks start at once. A worker prefetches at most half of its share of the
-- open tasks, so that the last tasks are spread over all workers.
wanted = wanted + 0
local needed, most = wanted, ARGV[13] + 0
if most > 0 then
  local live, n_placed = try('ZCOUNT', KEYS[6], now - 300, '+inf'), try('ZCARD', placed) -- a wrong type has no number
  local share = (size + (tonumber(n_placed) or 0) - needed) / (2 * math.max(tonumber(live) or 1, 1))
  wanted = needed + math.max(0, math.floor(math.min(most, share)))
end
limiting.use(due)
ordering.use(open, wanted, KEYS[7], tonumber(ARGV[14]), group, plain)
ordering.passed = prefix .. 'passed:' .. worker .. ':'

-- These lists have an element for each claimed task, and the last two have two: its id, the task of the reply, the text
-- of its deadline, and its new entries in `running` and `due`.
local ids, chosen, deadlines, entered, looks = {}, {}, {}, {}, {}
local serving -- the queue of the next tasks
local in_the_way, odd = {}, {} -- overdue tasks, and entries of invalid tasks in `due`
local changes = {} -- tasks that enter another place, or get another time: each has its id, place or nil, and time
local unwanted, looked_at = 0, 0
local left_open, left_placed = 0, false -- how many tasks leave `open`, and whether some leave their places

-- Each line of the property not_on is the name of a worker, and behind a tab the time until which it counts, or none.
local function not_here(names)
  for line in string.gmatch(names, '[^\n]+') do
    local name, till = string.match(line, '^([^\t]*)\t?(.*)$')
    if name == worker and (till == '' or (tonumber(till) or 0) > now) then return true end
  end
end

local pausing, pauses = call('EXISTS', KEYS[5]) == 1, {}
local function is_paused(name)
  if pausing and pauses[name] == nil then pauses[name] = call('HEXISTS', KEYS[5], name) == 1 end
  return pausing and pauses[name]
end

local met = {} -- the ids of tasks of this claim that may have returned, by the keys of the sets `returned`

-- Returns why a task must not start here: '' if it stays for other workers, the reason for which it is held, or nil. If
-- the task tries a held source, the second result is this reason.
local function obstacle(id, not_on, group_of_task, program, source)
  if not_on and not_here(not_on) then return '' end
  if not pausing then return nil end
  if is_paused('group=' .. (group_of_task or '')) then return 'paused=' .. group_of_task end
  local reason = 'source=' .. sources.name_of(program, source)
  if not is_paused(reason) then return nil end
  if type(try('ZSCORE', returned .. reason, id)) ~= 'string' then return reason end
  return nil, reason
end

-- Returns whether the worker may run a task, as far as the script knows before it reads all of the task.
local function may_run(id)
  local f = try('HMGET', tasks .. id, 'not_on', 'group', 'program', 'source')
  return f[3] and not obstacle(id, unpack(f, 1, 4))
end

-- Takes the task of a source from its sets.
local function leave(source)
  if source.place then
    left_placed = true
    take_member(source.place, source.member)
    drop(placed, source.id)
  else
    left_open = left_open + 1
    drop(open, source.id)
  end
end

-- Lets the task enter another place, or gives it another time.
local function set_aside(source, place, at)
  if place then leave(source) end
  changes[#changes + 1] = { id = source.id, place = place, at = at }
end

local function hold(source, reason)
  set_aside(source, reason .. '\n' .. (source.place or ''), ordering.time_of(source))
end

-- Reads the next task of a source: its properties f, and its place. Returns whether there is such a task, and its place
-- is here.
local function read_task(source)
  local f = try('HMGET', tasks .. source.id, unpack(properties, 1, source.rank and PREFETCHED or PLACE))
  local place, there = f[PLACE] or nil, source.rank ~= nil
  source.f, source.place = f, place
  if place then
    local p = split_place(place)
    there = p.name == (source.name or p.name) and p.priority == source.priority and not p.held
  end
  if f[1] and there then return true end
  drop(source.key, source.rank and source.id or source.member)
  if source.name then touch(source.name) end
end

-- Reads the times of a task. Returns whether it is valid.
local function is_valid(source)
  local f = source.f
  if f[2] == '' then f[2] = '0' end -- like the rules in Go, read an empty round as 0
  local start_after, end_before, timeout = number(f[3], 0), number(f[4], INF), number(f[5], INF)
  if not start_after and (tonumber(f[3]) or 0) < 0 then start_after = 0 end -- the original TDF accepts any past time
  source.start_after, source.end_before, source.timeout = start_after, end_before, timeout
  return f[1] == 'open' and start_after and end_before and timeout and round_of(f[2]) == (f[2] or '0')
end

-- The uses of limits, by limit key. A use has the fields room (the number of tasks that may start), count and per (the
-- rate, if the limit has one), first (the first waiting task, if tasks wait), ids (the tasks that start), and waiting
-- (those that begin to wait).
local uses = {}

-- Returns whether the limit of its key lets a task start now. The task then starts; otherwise, it must wait.
local function may_start(key, member, id)
  local use = uses[key] or { first = try('ZRANGE', held .. ':limit=' .. key, 0, 0)[1], ids = {}, waiting = {} }
  if not uses[key] then use.room, use.count, use.per = limiting.room(key) end
  uses[key] = use
  if use.first then table.insert(into(met, returned .. 'limit=' .. key), id) end
  local starts = #use.ids < use.room and not (use.first and member > use.first)
  table.insert(starts and use.ids or use.waiting, id)
  return starts
end

-- Starts a task, unless the limit of its key has no room. It may try the source that is held for a reason. A worker
-- prefetches no task of which a worker that is gone has already prefetched a round: that has a property `prefetched`.
local function start(source, trial)
  local id, f, key = source.id, source.f, source.place and source.f[LIMIT_KEY] or ''
  if #ids >= needed and (key ~= '' or source.timeout < INF or round_of(f[2]) ~= '0' or f[NOT_ON] or f[PREFETCHED]) then
    wanted, ordering.more = #ids, true
    return
  end
  if key ~= '' and not may_start(key, source.member, id) then return hold(source, 'limit=' .. key) end
  f[PLACE] = nil
  bytes = bytes - #(f[INPUT] or '') - #(f[SOURCE] or '') - #(f[META] or '') - #(f[BLOBS] or '')
  local n, deadline = #ids + 1, 'inf'
  local over, look = now + source.timeout, source.end_before
  if source.end_before < INF or source.timeout < INF then
    if over < source.end_before then look = math.min(look, over + margin) end
    deadline = text(math.min(over, source.end_before))
  end
  if n > needed then f[PREFETCHED] = '1' elseif f[PREFETCHED] then f[PREFETCHED] = '' end
  ids[n], chosen[n], deadlines[n] = id, { id, random .. '.' .. id, f, queue = serving }, deadline
  entered[2 * n - 1], entered[2 * n] = now_text, id
  looks[2 * n - 1], looks[2 * n] = look < lease_until and text(look) or lease_text, id
  fitting.take(source.request)
  if trial then table.insert(into(met, returned .. trial), id) end -- it has returned to try the source, once
  leave(source)
end

-- Decides whether the worker gets the next task of a source. Returns true if the task stays, for other workers.
local function consider(source)
  if not read_task(source) then return false end
  local f = source.f
  if source.mixed then
    local name = split_place(source.place).name
    local is, request = ordering.serves(name)
    source.request = request
    if queue_of(name) ~= source.mixed or not (is and fitting.fits(request)) then return true end
  end
  if not is_valid(source) then -- the server decides about it during the delay
    put(odd, now_text, source.id)
    return set_aside(source, source.place, now + 5)
  elseif math.min(source.end_before, source.place and number(f[CLAIM_BEFORE], INF) or INF) <= now then
    in_the_way[#in_the_way + 1] = source.id
    return true
  elseif source.start_after > now then
    ordering.next_due = math.min(ordering.next_due, source.start_after)
    return set_aside(source, source.place, source.start_after)
  end
  local reason, trial = obstacle(source.id, f[NOT_ON], f[6], f[8], f[SOURCE])
  if reason == '' then return true end
  if reason then return hold(source, reason) end
  return start(source, trial)
end

if fitting.plain then kept.use(prefix, worker, may_run, ordering.serves) end
local claimed = {}
for i, queue in ipairs(queues) do
  local before_queue = #ids
  serving = queue
  local is_open = not (is_paused('namespace') or is_paused('queue=' .. queue))
  if is_open and #ids < wanted and bytes > 0 and not ordering.more then
    if fitting.plain then kept.enter(queue) end
    ordering.begin(queue)
    local source = ordering.next()
    while source do
      ordering.more = bytes <= 0 or looked_at >= MOST_LOOKED_AT or looked_at % 16 == 15 and spent(1)
      if ordering.more then break end
      looked_at = looked_at + 1
      local stays = consider(source)
      if stays then unwanted = unwanted + 1 end
      ordering.use_up(stays)
      source = #ids < wanted and ordering.next()
    end
    ordering.leave()
  end
  claimed[i] = is_open and #ids - before_queue or -1
end

wrong = (left_placed or changes[1]) and not_sorted(placed) or bulk('ZADD', running, entered, try)
if wrong then return not_sorted(running) or wrong end -- also if Redis is full: then the script has written nothing
bulk('ZADD', due, looks)

for _, c in ipairs(changes) do
  if c.place then
    call('HSET', tasks .. c.id, 'place', c.place)
    enter_place(c.place, text(c.at), c.id)
  else
    call('ZADD', open, text(c.at), c.id)
  end
end
bulk('ZADD', due, odd)
for key, of in pairs(met) do bulk('ZREM', key, of, try) end
local line = now_text .. ' ' .. worker .. ': running'
local write = {
  '', 'state', 'running', 'lease_until', lease_text, 'lease', lease, 'deadline', '', 'log', '',
  '', now_text, '', worker, '', '', -- properties of the round: running, worker and claim
  '0:prefetched', '',
}
local round
for i, task in ipairs(chosen) do
  local id, f = ids[i], task[3]
  local log, names = f[LOG], names_of(f[6], task.queue)
  if f[2] ~= round then
    round = f[2]
    local of = (round or '0') .. ':'
    write[12], write[14], write[16] = of .. 'running', of .. 'worker', of .. 'claim'
  end
  if not log or log == '' or #log > 2000 then log = logged(log, line) else log = log .. '\n' .. line end
  write[1], write[9], write[11], write[17], write[19] = tasks .. id, deadlines[i], log, task[2], f[PREFETCHED]
  f[LOG] = ''
  call('HSET', unpack(write, 1, write[19] and 19 or 17))
  if names ~= '' then enter_indexes(groups, names, code, id) end
end
finish_indexes()
finish_places()
for key, use in pairs(uses) do
  local starts, set = {}, limiting.starts .. key
  for _, id in ipairs(use.ids) do
    limiting.count(key, id, true)
    put(starts, now_text, now_text .. ' ' .. id)
  end
  if use.per and starts[1] then
    bulk('ZADD', set, starts, try)
    try('ZREMRANGEBYRANK', set, 0, -1 - use.count)
    try('EXPIRE', set, math.ceil(use.per) + 60)
    -- If the server has checked the key before these starts, it does not know when the next task may start.
    if use.first then try('ZADD', held, 'XX', 'LT', text(now + use.per), 'limit=' .. key) end
  end
  -- With room left, a task waits only because waiting ones come before it.
  if use.waiting[1] and #use.ids < use.room then check_held(prefix, 'limit=' .. key) end
end
limiting.finish()
if #ids == 0 and promote(100, tasks) > 0 then ordering.more = true end
if fitting.plain then
  if kept.finish() then ordering.more = true end -- the worker may claim what was kept back
  ordering.next_due = math.min(ordering.next_due, kept.on and now + kept.CLAIMS_AFTER or INF)
end

local leaves_some = #ids + unwanted > 0 or kept.on -- other workers may want what this one leaves
if leaves_some and plain and size > left_open then wake(wakes .. 'open', 1) end
ordering.finish(leaves_some)

remember(table.concat(ids, ' '))
local next_due = #ids < wanted and ordering.next_due or INF
return answer({
  [2] = next_due < INF and text(next_due) or '', [3] = in_the_way, [4] = chosen,
  [5] = kept.on and 'kept' or ordering.more and '1' or '', [6] = tostring(unwanted), [7] = claimed,
  [8] = newer and upto or '',
})
