-- claim: hands open tasks to a worker. It serves the worker's queues in order. In a queue, the tasks with the highest
-- priority come first, and among them the tasks that have been due for the longest time.
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
--  6. open
--  7. wake list of open
--  8. partitions
--  9. paused
-- 10. limits
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
-- 15. the version of the partitions that the client knows, or ''
-- - the number of programs to avoid, and these programs
-- - the number of paused groups, and these groups
-- - the number of queues that the worker serves; for each, a name for its position, the number of its partitions, and
--   these partitions
-- - the number of properties that the worker needs, and their names
--
-- The first properties are state, round, start_after, end_before, timeout, group, log, program, input, not_on, source
-- and meta. The last property is limit_key. The script reads it only if the task has a place (see places.lua), because
-- each task with a limit key has one.
--
-- Returns a list of eight elements:
--  1. the time now
--  2. the time when the next task becomes due, or ''
--  3. the list of the ids of overdue tasks
--  4. the list of the claimed tasks; each is { id, claim id, values of the properties }, without the log
--  5. '1' if the lists may have more due tasks, or ''
--  6. the number of due tasks that the worker does not want
--  7. the list of the numbers of claimed tasks, one for each queue
--  8. if the client knows another version: the version, the list of the names of all partitions, and the list of what
--     is paused. In this case, the script has claimed nothing. Otherwise empty.
--
-- A task is overdue when its end_before is past. The client decides about the overdue tasks that the script returns. If
-- the clock may have leapt, the script returns no overdue tasks, and the server decides about them (see the function
-- trusted). The script delays an invalid task and adds it to `due`, so that the server decides about the task. If an id
-- has no hash, the script removes the id from its list. A repeated call returns the same tasks as the first call.
--
-- A task with a limit key is claimed only if the limit of the key has room. Otherwise, the script moves the task to the
-- place of the tasks that wait because of this limit, with the same score. It also does so if another waiting task of
-- the key is older, or has a higher priority. So claims meet each waiting task once.
--
-- A task of a paused group counts as a task of a program to avoid.
--
-- A claim reads a limited number of tasks. At the head of a queue, there may be many tasks that a worker does not want.
-- A position is the place after these tasks: the next claim continues there. All workers that avoid the same programs
-- and claim from the same partitions share a position. If a worker meets a task that must not run on that worker, the
-- worker gets a position of its own. After PASSED_FOR seconds, a claim starts at the head again.

local call, due, running, open, limits = redis.call, KEYS[2], KEYS[3], KEYS[6], KEYS[10]
local slot, sequence, tasks, groups, code = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4], tonumber(ARGV[5])
local worker, wanted, lease, random = ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8]), ARGV[9]
local bytes, unwanted_name = tonumber(ARGV[10]), ARGV[11]
local margin, absence, passed, known = tonumber(ARGV[12]), tonumber(ARGV[13]), ARGV[14], ARGV[15]
local LOG, INPUT, NOT_ON, SOURCE, META = 7, 9, 10, 11, 12
local MOST_LOOKED_AT, MOST_IN_THE_WAY, PAGE = 1000, 300, 100
local PASSED_FOR = 60
cursor = 15
use_places(open)
limiting.use(due)

local avoid, paused_group, queues = {}, {}, {}
local unwanted, paused = take_list(1), take_list(1)
for _, program in ipairs(unwanted) do avoid[program] = true end
for _, group in ipairs(paused) do paused_group[group] = true end
for i = 1, tonumber(take()) do queues[i] = { position = take(), partitions = take_list(1), claimed = 0 } end
local properties = take_list(1)
local n_properties = #properties
properties[n_properties + 1] = 'place'

local function reply_of(id, claim, f)
  f[LOG] = ''
  return { id, claim, f }
end

local function read(id, n)
  local f = redis.pcall('HMGET', tasks .. id, unpack(properties, 1, n)) -- an error reply if the key is not a hash
  if f[2] == '' then f[2] = '0' end -- like the rules in Go, read an empty round as 0
  return f
end

local before, stale = answered(slot, sequence)
if stale then return stale end
if before then
  local again, i = {}, 0
  for id in string.gmatch(before, '%S+') do
    i = i + 1
    local f = read(id, n_properties)
    local claim = random .. '.' .. i
    if f[1] == 'running' and call('HGET', tasks .. id, (f[2] or '0') .. ':claim') == claim then
      again[#again + 1] = reply_of(id, claim, f)
    end
  end
  return { text(now), '', {}, again, '', '0', {}, {} }
end

local version = call('HGET', partitions, 'version') or ''
if version ~= known then
  local names = {}
  for _, name in ipairs(call('HKEYS', partitions)) do
    if name ~= 'version' then names[#names + 1] = name end
  end
  return { now_text, '', {}, {}, '1', '0', {}, { version, names, call('HKEYS', KEYS[9]) } }
end

-- The first part of the script reads and decides.

local wrong, size = not_sorted(open)
wrong = not_sorted(due) or wrong
if wrong then return wrong end

local chosen, in_the_way, gone, later_here, odd, waiting = {}, {}, {}, {}, {}, {}
local avoided, looked_at, more = 0, 0, false
-- Whether to read a task's program first, because reading the other properties costs more
local picky = #unwanted + #paused > 0
-- Indexes in an element of `chosen`
local ID, FIELDS, LIST, DEADLINE, LOOK, GROUP = 1, 2, 3, 4, 5, 6

-- A list is a sorted set of open tasks: the list `open` or a place.
local plain = { key = open, priority = '0', removed = {} }
local lists = {} -- the places that the script has read

local function list_at(partition, priority)
  local name = join_place(partition, priority)
  local list = { key = places .. name, place = name, priority = priority, removed = {} }
  lists[#lists + 1] = list
  return list
end

-- Each line of the property not_on is the name of a worker.
local function not_here(names)
  return names and string.find('\n' .. names .. '\n', '\n' .. worker .. '\n', 1, true)
end

local function choose(queue, list, id, f, end_before, timeout)
  bytes = bytes - #(f[INPUT] or '') - #(f[SOURCE] or '') - #(f[META] or '')
  queue.claimed = queue.claimed + 1
  local over = now + timeout
  chosen[#chosen + 1] = {
    id, f, list, math.min(end_before, over), math.min(end_before, over + margin), group_index(groups, f[6], id),
  }
end

-- The uses of limits, by limit key. A use has these fields:
-- - room: the number of tasks that may start, without the rate
-- - count and per: the rate, if the limit has one
-- - starts: the key of the list of the last starts
-- - priority and score: those of the first waiting task, if there is one
-- - ids: the chosen tasks
-- - behind: whether a task waits because of the order of the tasks, although there is room
local uses = {}

local function read_use(key)
  local use = { room = INF, starts = limiting.starts .. key, ids = {} }
  local limit = call('HGET', limits, key)
  if not limit then return use end
  local at_most, count, per = string.match(limit, 'at_most=(%d+)'), string.match(limit, 'rate=(%d+)/(%S+)')
  if at_most then
    local n = redis.pcall('ZCARD', limiting.running .. key)
    use.room = type(n) == 'number' and tonumber(at_most) - n or 0
  end
  use.count, use.per = tonumber(count), tonumber(per)
  -- After the clock was set back, the last start lies in the future. The server then corrects the starts.
  local last = use.per and redis.pcall('LINDEX', use.starts, -1)
  if last and (type(last) ~= 'string' or (tonumber(last) or INF) > now) then use.room = 0 end
  if call('ZSCORE', limiting.checks, key) then
    local part = 'limit=' .. key
    local priority = redis.pcall('ZREVRANGE', levels .. part, 0, 0)[1]
    local first = priority and redis.pcall('ZRANGE', places .. join_place(part, priority), 0, 0, 'WITHSCORES')
    if first and first[2] then use.priority, use.score = tonumber(priority), score_of(first[2]) end
    use.has_waiting = true
  end
  return use
end

-- Returns whether the limit of a key lets a task start now.
local function may_start(key, priority, score)
  local use = uses[key] or read_use(key)
  uses[key] = use
  local n = #use.ids
  if n >= use.room then return false end
  if use.score and (priority < use.priority or priority == use.priority and score > use.score) then
    use.behind = true
    return false
  end
  if not use.per then return true end
  local earlier = n < use.count and redis.pcall('LINDEX', use.starts, n - use.count)
  local at = type(earlier) == 'string' and tonumber(earlier)
  return n < use.count and (not earlier or at and at + use.per <= now)
end

local function wait_for_limit(list, id, score, key)
  local at = join_place('limit=' .. key, list.priority)
  wrong = wrong or wrong_place(at)
  waiting[#waiting + 1] = { list, id, score, at, key }
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
local function consider(queue, list, id, score)
  if picky then
    local f = redis.pcall('HMGET', tasks .. id, 'program', 'not_on', 'group')
    if avoid[f[1]] or paused_group[f[3]] then return 'avoided' end
    if not_here(f[2]) then return 'elsewhere' end
  end
  local f = read(id, list.place and n_properties + 1 or n_properties - 1)
  if not f[1] or list.place and f[n_properties + 1] ~= list.place then -- the id has no task, or the task is elsewhere
    gone[#gone + 1] = { list, id }
    return
  end
  f[n_properties + 1] = nil
  local start_after, end_before, timeout = number(f[3], 0), number(f[4], INF), number(f[5], INF)
  local sound = start_after and end_before and timeout and round_of(f[2]) == (f[2] or '0')
  if f[1] ~= 'open' or not sound then
    odd[#odd + 1] = { list, id }
  elseif end_before <= now then
    if not trusted() then return 'elsewhere' end
    in_the_way[#in_the_way + 1] = id
  elseif start_after > now then
    later_here[#later_here + 1] = { list, id, start_after }
  elseif not_here(f[NOT_ON]) then
    picky = true
    return 'elsewhere'
  else
    local key = list.place and f[n_properties] or ''
    if key ~= '' and not may_start(key, tonumber(list.priority), score_of(score)) then
      return wait_for_limit(list, id, score, key)
    end
    choose(queue, list, id, f, end_before, timeout)
    if key ~= '' then table.insert(uses[key].ids, id) end
  end
end

-- A position is stored as 'began score id' or 'began score id priority'. The first part is the time of the call that
-- began at the head of the queue. The last parts are the score, the id and the priority of the last task that a call
-- skipped. Without a priority, it is 0.

-- The server returns waiting tasks to their places with their old scores (see limitreturn.lua), and so before a
-- position. So claims then begin at the head again. But for a second, claims continue at a position, so that they get
-- past tasks that the worker does not want.
local returned_at
local function overlooks(began)
  if returned_at == nil then
    local at = redis.pcall('GET', passed .. 'returned')
    returned_at = type(at) == 'string' and tonumber(at) or 0
  end
  return began < returned_at and now - began > 1
end

local function position(key)
  local at = unwanted_name ~= '' and redis.pcall('GET', key)
  if type(at) ~= 'string' then return nil end
  local began, score, id, priority = string.match(at, '^(%S+) (%S+) (%S+) ?(%-?%d*)$')
  began = tonumber(began)
  if began and overlooks(began) then return nil end
  if began and score_of(score) and began <= now and now - began <= PASSED_FOR then
    return { began = began, score = score, id = id, priority = priority ~= '' and priority or '0' }
  end
end

-- Returns the number of entries of a list before a position. The list has the priority of the position.
local function rank_after(key, at)
  local score = call('ZSCORE', key, at.id)
  if score and score_of(score) == score_of(at.score) then return call('ZRANK', key, at.id) + 1 end
  return call('ZCOUNT', key, '-inf', '(' .. at.score)
end

-- Returns whether position a comes after position b. Both may be nil, for the head of the queue.
local function is_after(a, b)
  if not a or not b then return a ~= nil end
  local p, q = tonumber(a.priority), tonumber(b.priority)
  if p ~= q then return p < q end
  local s, t = score_of(a.score), score_of(b.score)
  if s ~= t then return s > t end
  return a.id > b.id -- Redis, too, orders equal scores by member
end

local function full()
  return #chosen >= wanted or bytes <= 0 or #in_the_way >= MOST_IN_THE_WAY
end

local next_due = INF -- the time when the next task becomes due, as far as the script has seen

-- A reader reads the due entries of a list, from a rank on. Its fields score, id and at are its next due entry, with
-- the score as a text and as a number. Without a due entry, `at` is INF.

local function advance(reader)
  if reader.i > #reader.entries and not reader.ended then
    reader.entries = call('ZRANGE', reader.list.key, reader.rank, reader.rank + reader.page - 1, 'WITHSCORES')
    reader.ended = #reader.entries < 2 * reader.page
    reader.rank, reader.page, reader.i = reader.rank + reader.page, PAGE, 1
  end
  reader.id, reader.score = reader.entries[reader.i], reader.entries[reader.i + 1]
  reader.at = reader.id and score_of(reader.score) or INF
  reader.i = reader.i + 2
  if reader.at > now then
    next_due = math.min(next_due, reader.at)
    reader.at, reader.list.exhausted = INF, reader.from_head
  end
end

-- Returns a reader of a list. The reader shares the work with other readers, so its first page is small.
local function reader_of(list, rank, readers)
  local reader = { list = list, rank = rank, from_head = rank == 0, entries = {}, i = 1 }
  reader.page = math.max(1, math.min(math.ceil(2 * wanted / readers), wanted, PAGE))
  return reader
end

-- Returns the reader whose next due entry is the oldest, or nil. A reader that has handed out its entry advances first.
local function oldest(readers)
  local first
  for _, reader in ipairs(readers) do
    if not reader.at then advance(reader) end
    if reader.at < INF and (not first or reader.at < first.at) then first = reader end
  end
  return first
end

-- Chooses tasks from lists of one priority. The positions of `skipped` move behind the tasks that the worker does not
-- want: the position `mine` behind all of them, the position `all` behind the first tasks that no worker with the same
-- programs to avoid wants.
local function look_through(queue, readers, skipped)
  while #chosen < wanted do
    local reader = oldest(readers)
    if not reader then return end
    if full() or looked_at >= MOST_LOOKED_AT or looked_at % 16 == 15 and spent(1) then
      more = true
      return
    end
    looked_at, reader.at = looked_at + 1, nil
    local why = consider(queue, reader.list, reader.id, reader.score)
    if why then
      avoided, skipped.shared = avoided + 1, skipped.shared and why == 'avoided'
      skipped.mine = { score = reader.score, id = reader.id, priority = reader.list.priority }
      if skipped.shared then skipped.all = skipped.mine end
    end
  end
end

-- A source is a partition, with its priorities in descending order. The list `open` is a source with one priority.

local function sources_of(queue)
  local sources = {}
  for _, partition in ipairs(queue.partitions) do
    if partition == DEFAULT then sources[#sources + 1] = { plain = true, top = '0' } end
    if partition ~= DEFAULT or version ~= '' then sources[#sources + 1] = { partition = partition } end
  end
  return sources
end

-- The sets `levels` and `later` repeat what the places say. So the script ignores a set of a wrong type, and removes
-- members that are not priorities.

local function is_priority(s) return string.match(s, '^%-?%d+$') and #s <= 11 end

-- Moves the priorities whose first task has become due from `later` to `levels`. If there are too many of them for one
-- call, the claim ends, because a priority that stays in `later` may be the highest.
local function promote(partition)
  repeat
    local due_now = redis.pcall('ZRANGEBYSCORE', later .. partition, '-inf', now_text, 'LIMIT', 0, 500)
    local entries = {}
    for _, priority in ipairs(due_now) do
      if is_priority(priority) then entries[#entries + 1], entries[#entries + 2] = priority, priority end
    end
    if #entries > 0 and not_sorted(levels .. partition) then return end
    bulk('ZADD', levels .. partition, entries)
    bulk('ZREM', later .. partition, due_now)
    more = more or #due_now == 500 and spent(2)
  until #due_now < 500 or more
end

-- A position may have many priorities before it. Since the claim that began at the head of the queue, tasks may have
-- come to these priorities. So a claim looks at the highest ABOVE of them again.
local ABOVE = 10

-- Returns the highest priority of a source that was not read yet, or nil.
local function top_of(source, from)
  if source.plain or source.top ~= nil then return source.top or nil end
  local key = levels .. source.partition
  if not source.at then
    promote(source.partition)
    local above = from and redis.pcall('ZCOUNT', key, '(' .. from.priority, '+inf')
    source.at, source.above = 0, type(above) == 'number' and above or 0
  end
  if source.at == ABOVE then source.at = math.max(source.at, source.above) end
  local top = redis.pcall('ZREVRANGE', key, source.at, source.at)[1]
  source.at = source.at + 1
  if top and not is_priority(top) then
    call('ZREM', key, top)
    top = nil
  end
  source.top = top or false
  return top
end

-- Returns the rank in a list at which a claim that continues at a position begins. At a higher priority, it begins with
-- the tasks that have come since the claim that began at the head of the queue.
local function rank_from(list, from)
  if not from then return 0 end
  local level, start = tonumber(list.priority), tonumber(from.priority)
  if level == start then return rank_after(list.key, from) end
  return level > start and call('ZCOUNT', list.key, '-inf', string.format('(%.6f', from.began)) or 0
end

-- Returns readers for the lists with the highest priority that was not read yet, or nil.
local function next_level(sources, from)
  local highest
  for _, source in ipairs(sources) do
    local top = top_of(source, from)
    if top and (not highest or tonumber(top) > tonumber(highest)) then highest = top end
  end
  if not highest then return nil end
  local readers = {}
  for _, source in ipairs(sources) do
    if source.top == highest then
      local list = source.plain and plain or list_at(source.partition, highest)
      readers[#readers + 1] = reader_of(list, rank_from(list, from), #sources)
      source.top = nil
      if source.plain then source.top = false end
    end
  end
  return readers
end

local positions = {} -- keys and values in turn

local function keep(key, began, at)
  local n, level = #positions, at.priority ~= '0' and ' ' .. at.priority or ''
  positions[n + 1], positions[n + 2] = key, string.format('%.6f %s %s%s', began, at.score, at.id, level)
end

local function look_in(queue)
  local shared = passed .. unwanted_name .. ':' .. queue.position
  local own = passed .. unwanted_name .. '@' .. worker .. ':' .. queue.position
  local of_all, of_mine = position(shared), position(own)
  local at_mine = is_after(of_mine, of_all)
  local from, skipped = at_mine and of_mine or of_all, { shared = true }
  local sources = sources_of(queue)
  while #chosen < wanted and not more do
    local readers = next_level(sources, from)
    if not readers or more then break end
    local above = from and readers[1] and tonumber(readers[1].list.priority) > tonumber(from.priority)
    if lists[2] and not above then looked_at = looked_at + #readers end -- many priorities cost as much as many tasks
    look_through(queue, readers, skipped)
    if looked_at >= MOST_LOOKED_AT then more = true end
  end
  if unwanted_name == '' then return end
  local began = from and from.began or now
  if is_after(skipped.all, from) and not at_mine then keep(shared, began, skipped.all) end
  if is_after(skipped.mine, from) and (at_mine or skipped.mine ~= skipped.all) then keep(own, began, skipped.mine) end
end

for _, queue in ipairs(queues) do
  if not full() and not more then
    local before_queue = #chosen
    look_in(queue)
    queue.claimed = #chosen - before_queue
  end
end

if wrong then return wrong end

-- From here on, the script writes.

local entered, looks, ids = {}, {}, {}
local lease_until = now + lease
local lease_text = text(lease_until)
for i, c in ipairs(chosen) do
  entered[2 * i - 1], entered[2 * i] = now_text, c[ID]
  looks[2 * i - 1], looks[2 * i] = c[LOOK] < lease_until and text(c[LOOK]) or lease_text, c[ID]
  ids[i] = c[ID]
end
for i = 1, #entered, 500 do -- the first write, so that nothing is written if the list has a wrong type
  local added = redis.pcall('ZADD', running, unpack(entered, i, math.min(i + 499, #entered)))
  if type(added) == 'table' then return redis.error_reply('WRONGTYPE ' .. running .. ' is not a sorted set') end
end
bulk('ZADD', due, looks)

local function remove(list, id) list.removed[#list.removed + 1] = id end

for _, g in ipairs(gone) do call('ZREM', g[1].key, g[2]) end
for _, l in ipairs(later_here) do call('ZADD', l[1].key, text(l[3]), l[2]) end
for _, o in ipairs(odd) do -- an invalid task: the server decides about it during the delay
  call('ZADD', o[1].key, text(now + 5), o[2])
  call('ZADD', due, text(now), o[2])
end

for _, w in ipairs(waiting) do
  remove(w[1], w[2])
  call('HSET', tasks .. w[2], 'place', w[4])
  if uses[w[5]].has_waiting then redis.pcall('ZREM', limiting.returned .. w[5], w[2]) end
end
for key, use in pairs(uses) do
  local n = #use.ids
  for _, id in ipairs(use.ids) do limiting.count(key, id, true) end
  if n > 0 and use.has_waiting then redis.pcall('ZREM', limiting.returned .. key, unpack(use.ids)) end
  if n > 0 and use.per then
    for _ = 1, n do redis.pcall('RPUSH', use.starts, now_text) end
    redis.pcall('LTRIM', use.starts, -use.count, -1)
    redis.pcall('EXPIRE', use.starts, math.ceil(use.per) + 60)
  end
end

for i = 1, #positions, 2 do call('SET', positions[i], positions[i + 1], 'EX', 2 * PASSED_FOR) end

local out = {}
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
  remove(c[LIST], id)
  out[i] = reply_of(id, claim, f)
end

bulk('ZREM', open, plain.removed)
for _, list in ipairs(lists) do
  bulk('ZREM', list.key, list.removed)
  bulk('ZREM', placed, list.removed)
  if #list.removed > 0 or list.exhausted then refresh_place(list.place) end
end

for _, w in ipairs(waiting) do enter_place(w[4], w[3], w[2]) end
finish_places()
limiting.finish()
for key, use in pairs(uses) do
  if use.behind then limiting.check_now(key) end
end

local function note_next(key)
  -- The reply is an error if the set has a wrong type.
  local left = redis.pcall('ZRANGEBYSCORE', key, '(' .. now_text, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  if left[2] then next_due = math.min(next_due, score_of(left[2])) end
end
local function serves_default()
  for _, queue in ipairs(queues) do
    for _, partition in ipairs(queue.partitions) do
      if partition == DEFAULT then return true end
    end
  end
end
if serves_default() then
  if #chosen < wanted then note_next(open) end
  -- Wake another worker: it may want the other due tasks, or the tasks that this worker did not want.
  if #chosen + avoided > 0 and size > #plain.removed then wake(KEYS[7], 1) end
end
if version ~= '' then
  for _, queue in ipairs(queues) do
    for _, partition in ipairs(queue.partitions) do
      if #chosen < wanted then note_next(later .. partition) end
      if #chosen + avoided > 0 and call('EXISTS', levels .. partition) == 1 then
        wake(wakes .. (partition == DEFAULT and 'open' or partition), 1)
      end
    end
  end
end

local claimed = {}
for i, queue in ipairs(queues) do claimed[i] = queue.claimed end
remember(slot, sequence, table.concat(ids, ' '))
return {
  now_text, next_due < INF and text(next_due) or '', in_the_way, out, more and '1' or '', tostring(avoided),
  claimed, {},
}
