-- claim: hands open tasks to a worker. It serves the worker's queues in order. In a queue, the tasks with the highest
-- priority come first, and among them the tasks that have been due for the longest time.
--
-- from-state: open; to-state: running, with a claim id and a lease
--
-- Callers: redisstate/claimcall.go, and redisstate/turn.go, which sends it together with move.lua
--
-- KEYS: calls of this client, due, running, servers, leap, open, wake list of open, partitions, paused, limits,
-- workers, reserved
--
-- ARGV; a number is the index of the first argument in its line:
--  1. call slot, sequence number, prefixes of the keys of tasks and of groups
--  5. code of the state running in a group's index, worker, maximum number of tasks, lease in seconds
--  9. random part of the claim ids, approximate limit for the bytes of inputs, sources and metas
-- 11. name of the set of programs to avoid, or '' to start at the head of the lists
-- 12. number of seconds after a deadline; until then, the worker itself reports the time-out
-- 13. number of seconds after which a server without a heartbeat counts as absent
-- 14. prefix of the keys of positions, the version of the pauses that the client knows, or ''
-- 16. '1' or '' for each of: the worker runs programs, it handles all programs without a source, claimplain.lua may
--     serve it
-- 19. the largest number of further tasks that the worker prefetches
-- - the number of properties that the worker needs, and their names
-- - in the same form: the programs to avoid, the paused groups, the tags that the worker offers, and the programs for
--   which it has handlers
-- - the group of the tasks that the worker claims, as in the name of a partition, or '' for all groups
-- - the arguments of fitting.lua: how long the worker still runs, and what it has free
-- - the number of queues that the worker serves; for each, its name, and a name for its positions
-- - if the claim requires tasks to be unchanged: for each of them, its id, state, round and revision, and '1' if it
--   must not be in the list `archived`
--
-- The first properties are state, round, start_after, end_before, timeout, group, log, program, input, not_on, source
-- and meta. The last properties are 0:prefetched, fetch, claim_before, limit_key, input_encoding and resources. The
-- script reads the last five only if the task has a place (see places.lua), because each task with one of them has one.
--
-- Returns a list of nine elements, whose names in Go are those of the constants claimReply… in redisstate/claim.go:
--  1. the time now, the time when the next task becomes due or '', the list of the ids of overdue tasks
--  4. the list of the claimed tasks; each is { id, claim id, values of the properties }, without the log
--  5. 'kept' if the worker is kept for a task, '1' if the lists may have more due tasks, or ''
--  6. the number of due tasks that the worker does not want, the list of the numbers of claimed tasks of each queue
--  8. if the client knows another version: the version, and the list of what is paused; otherwise empty
--  9. the list of the ids of required tasks that have changed
--
-- If element 8 or 9 is not empty, the script has claimed nothing.
--
-- A task is overdue when its end_before or its claim_before is past. The client decides about the overdue tasks that
-- the script returns. The script delays an invalid task and adds it to `due`, so that the server decides about the
-- task. If an id has no hash, the script removes the id from its list. A task of a paused group counts as a task of a
-- program to avoid. A repeated call returns the same tasks as the first call.
--
-- The order in which the script reads tasks is in ordering.lua. The limits of keys are in starting.lua. A claim reads a
-- limited number of tasks, and the next claim may continue at a position (see positions.lua).

local absence, prefix_of_positions, known, runs_programs, runs_anything = unpack(ARGV, 13, 17)
local MOST_LOOKED_AT, MOST_IN_THE_WAY = 1000, 300
cursor = 20 + ARGV[20]

local avoid, paused_group, queues = take_set(), take_set(), {}
local offer = { programs = runs_programs == '1', anything = runs_anything == '1' }
offer.tags, offer.handlers, offer.group = take_set(), take_set(), take()
fitting.use()
for i = 1, tonumber(take()) do queues[i] = { name = take(), position = take() } end
local n_properties = #properties
local CLAIM_BEFORE, LIMIT_KEY = n_properties - 3, n_properties - 2 -- indexes of properties
properties[n_properties + 1] = 'place'

local function read(id, n)
  -- The reply is an error if the key is not a hash.
  local f = seen[id] or redis.pcall('HMGET', tasks .. id, unpack(properties, 1, n))
  if f[2] == '' then f[2] = '0' end -- like the rules in Go, read an empty round as 0
  return f
end

if before then
  local again, i = {}, 0
  for id in string.gmatch(before, '%S+') do
    i = i + 1
    local f, claim = read(id, n_properties), random .. '.' .. i
    if f[1] == 'running' and call('HGET', tasks .. id, (f[2] or '0') .. ':claim') == claim then
      f[LOG] = ''
      again[#again + 1] = { id, claim, f }
    end
  end
  return { now_text, '', {}, again, '', '0', {}, {}, {} }
end

if version ~= known then
  return { now_text, '', {}, {}, '1', '0', {}, { version, call('HKEYS', KEYS[9]) }, {} }
end

if cursor < #ARGV then
  local changed, archived = {}, string.sub(open, 1, -1 - #'open') .. 'archived'
  while cursor < #ARGV do
    local id, state, round, revision, settled = take(), take(), take(), take(), take() == '1'
    local f = redis.pcall('HMGET', tasks .. id, 'state', 'round', 'revision') -- an error if the key is not a hash
    local same = f[1] == state and round_of(f[2]) == round and (number(f[3], 0) or 0) == tonumber(revision)
    same = same and not (settled and type(redis.pcall('ZSCORE', archived, id)) == 'string')
    if not same then changed[#changed + 1] = id end
  end
  if changed[1] then return { now_text, '', {}, {}, '', '0', {}, {}, changed } end
end

-- The first part of the script reads and decides.

local has_positions = unwanted_name ~= ''
positions.use(prefix_of_positions, unwanted_name)
use_places(open)
local n_placed = ARGV[19] ~= '0' and redis.pcall('ZCARD', placed) -- an error reply if the key is not a sorted set
prefetch(size + (type(n_placed) == 'number' and n_placed or 0))
starting.use(due, KEYS[10])
ordering.use(open, wanted, offer)
begin()

local in_the_way, odd = {}, {} -- overdue tasks, and entries of invalid tasks in `due`
local corrections = {} -- the list, the id of an entry to change in it, and the new score, or nil to remove the entry
local avoided, looked_at = 0, 0
-- Whether to read a task's program first, because reading the other properties costs more
local picky = next(avoid) ~= nil or next(paused_group) ~= nil

-- Each line of the property not_on is the name of a worker.
local function not_here(names)
  return names and string.find('\n' .. names .. '\n', '\n' .. worker .. '\n', 1, true)
end

-- Returns whether the script may trust the clock when it decides that a task is overdue; otherwise the server decides.
-- If a server sees a leap of the clock, it writes the leap to `leap` before its next heartbeat. So after a recent
-- heartbeat, `leap` shows whether the clock has leapt. Without any heartbeat, the script has nothing to check the clock
-- against, and trusts it.
local trust
local function trusted()
  if trust == nil then
    -- A reply is an error if its key has a wrong type.
    local seen = redis.pcall('ZREVRANGE', KEYS[4], 0, 0, 'WITHSCORES')[2]
    local till = redis.pcall('HGET', KEYS[5], 'until')
    local over = type(till) ~= 'string' or now >= (number(till, 0) or 0)
    trust = not seen or over and math.abs(now - score_of(seen)) < tonumber(absence)
  end
  return trust
end

-- Decides whether the worker gets a task. Returns 'avoided' if the worker avoids the task's program. Returns
-- 'elsewhere' if the worker must not get the task now, for another reason. In both cases, the task stays in the list.
local function consider(list, id, score)
  if picky then
    local f = redis.pcall('HMGET', tasks .. id, 'program', 'not_on', 'group')
    if avoid[f[1]] or paused_group[f[3]] then return 'avoided' end
    if not_here(f[2]) then return 'elsewhere' end
  end
  local placed = list.place
  local f = read(id, placed and n_properties + 1 or PREFETCHED)
  if not f[1] or placed and f[n_properties + 1] ~= placed then -- the id has no task, or the task is elsewhere
    corrections[#corrections + 1] = { list, id }
    return
  end
  local start_after = f[3] == '0' and 0 or number(f[3], 0)
  local end_before, timeout = f[4] == 'inf' and INF or number(f[4], INF), f[5] == 'inf' and INF or number(f[5], INF)
  local claim_before = placed and f[CLAIM_BEFORE] and number(f[CLAIM_BEFORE], 0) or INF
  if not start_after and (tonumber(f[3]) or 0) < 0 then start_after = 0 end -- the original TDF accepts any past time
  local sound = start_after and end_before and timeout and (f[2] == '0' or round_of(f[2]) == (f[2] or '0'))
  if f[1] ~= 'open' or not sound then -- the server decides about it during the delay
    corrections[#corrections + 1] = { list, id, now + 5 }
    put(odd, now_text, id)
  elseif math.min(end_before, claim_before) <= now then
    if not trusted() then return 'elsewhere' end
    in_the_way[#in_the_way + 1] = id
  elseif start_after > now then
    corrections[#corrections + 1] = { list, id, start_after }
  elseif f[NOT_ON] and not_here(f[NOT_ON]) then
    picky = true
    return 'elsewhere'
  else
    local key = placed and f[LIMIT_KEY] or ''
    if #ids >= needed and (key ~= '' or not may_prefetch(f, timeout)) then
      wanted, ordering.more = #ids, true
      return
    end
    if key ~= '' and not starting.may_start(key, tonumber(list.priority), score_of(score)) then
      return starting.wait(key, list, id, score)
    end
    f[n_properties + 1] = nil
    choose(id, f, end_before, timeout)
    list.removed[#list.removed + 1] = id
    if key ~= '' then starting.start(key, id) end
  end
end

-- Returns whether the worker may run a task, as far as the script knows before it reads all of the task.
local function may_run(id)
  local f = redis.pcall('HMGET', tasks .. id, 'program', 'not_on', 'group')
  return f[1] and not (avoid[f[1]] or paused_group[f[3]] or not_here(f[2]))
end

if fitting.plain then reserving.use(KEYS[12], worker, may_run) end

local function full() return bytes <= 0 or #in_the_way >= MOST_IN_THE_WAY end

-- Chooses tasks from a queue. Without positions, `skipped` is nil. Otherwise its positions move behind the tasks that
-- the worker does not want: the position `mine` behind all of them, the position `all` behind the first tasks that no
-- worker with the same programs to avoid wants.
local function look_through(skipped, read_before)
  while #ids < wanted do
    local source = ordering.next()
    if not source then return end
    if full() or looked_at >= MOST_LOOKED_AT or looked_at % 16 == 15 and spent(1) then
      ordering.more = true
      return
    end
    if fitting.plain then reserving.read_to(ordering.queue.name, source.priority, source.at) end
    looked_at, source.at = looked_at + 1, nil
    local n_before = #ids
    local why = consider(source.list, source.id, source.score)
    if #ids > n_before then fitting.take(source.request) end
    if why then avoided = avoided + 1 end
    if why and skipped then
      skipped.shared = skipped.shared and why == 'avoided'
      skipped.mine = {
        score = source.score, id = source.id, priority = source.list.priority, read = read_before + looked_at,
        base = ordering.queue.sweep,
      }
      if skipped.shared then skipped.all = skipped.mine end
    end
  end
end

local function keep_positions(queue, from, at_mine, skipped)
  local began = ordering.queue.began
  if positions.is_after(skipped.all, from) and not at_mine then
    positions.keep(positions.key(queue.position), began, skipped.all)
  end
  if positions.is_after(skipped.mine, from) and (at_mine or skipped.mine ~= skipped.all) then
    positions.keep(positions.key(queue.position, worker), began, skipped.mine)
  end
end

-- Moves the positions to where a sweep continues.
local function move_on(skipped, base, n_read)
  if skipped.mine and skipped.mine.base == base then return end
  skipped.mine = positions.sweep_from(base, n_read)
  if skipped.shared then skipped.all = skipped.mine end
end

local function look_in(queue)
  if not has_positions then
    ordering.begin(queue.name, queue.position)
    look_through()
    ordering.leave(false)
    return
  end
  local of_all = positions.read(positions.key(queue.position), queue.name)
  local of_mine = positions.read(positions.key(queue.position, worker), queue.name)
  local at_mine = positions.is_after(of_mine, of_all)
  local from, skipped = at_mine and of_mine or of_all, { shared = true }
  local read_before, n_before = from and from.read or 0, #ids
  ordering.begin(queue.name, queue.position, from)
  look_through(skipped, read_before)
  local base = ordering.leave(#ids == n_before)
  if base then move_on(skipped, base, read_before + looked_at) end
  keep_positions(queue, from, at_mine, skipped)
end

local claimed = {}
for i, queue in ipairs(queues) do
  local before_queue = #ids
  if #ids < wanted and not full() and not ordering.more then
    if fitting.plain then reserving.enter(queue.name) end
    look_in(queue)
    local all_read = #ids < wanted and not full() and not ordering.more
    if all_read and fitting.plain then reserving.read_to(queue.name, -INF, INF) end
  end
  claimed[i] = #ids - before_queue
  for k = before_queue + 1, #ids do chosen[k].queue = queue.name end
end

wrong = starting.wrong or #ordering.lists > 0 and not_sorted(placed)
if wrong then return wrong end

-- From here on, the script writes.
wrong = write_lists()
if wrong then return wrong end

for _, c in ipairs(corrections) do
  local list, id, score = unpack(c)
  list.changed = true
  if score then call('ZADD', list.key, text(score), id) else call('ZREM', list.key, id) end
end
bulk('ZADD', due, odd)
starting.leave(tasks)
positions.finish()

write_hashes()
bulk('ZREM', open, ordering.plain.removed)
ordering.remove()
finish_places()
starting.finish()
if fitting.plain then
  if reserving.finish() then ordering.more = true end -- the worker may claim what was kept back
  ordering.next_due = math.min(ordering.next_due, reserving.next_claim())
end

local leaves = #ids + avoided > 0 or reserving.on -- whether other workers may want what this one leaves
local next_due = ordering.next_due
for _, queue in ipairs(queues) do
  if queue.name == DEFAULT and offer.programs and offer.group == '' then
    if #ids < wanted then
      -- The reply is an error if the set has a wrong type.
      local left = redis.pcall('ZRANGEBYSCORE', open, '(' .. now_text, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
      if left[2] then next_due = math.min(next_due, score_of(left[2]) or INF) end
    end
    -- Wake another worker: it may want the other due tasks, or the tasks that this worker did not want.
    if leaves and size > #ordering.plain.removed then wake(KEYS[7], 1) end
  end
  if #ids < wanted then next_due = math.min(next_due, ordering.next_coming(queue.name)) end
end
if leaves then ordering.wake() end

remember(table.concat(ids, ' '))
local more = reserving.on and 'kept' or ordering.more and '1' or ''
return {
  now_text, next_due < INF and text(next_due) or '', in_the_way, chosen, more, tostring(avoided), claimed, {}, {},
}
