-- ordering: common code of claims. It reads the due tasks of a queue in their order: by priority, and then by age.
--
-- A list is a sorted set of open tasks: the list `open` or a place (see places.lua). A list has these fields:
-- - key, priority, and place, which is nil for the list `open`
-- - removed: the ids that the claim removes from it
-- - exhausted: whether the claim has read all of its due tasks
-- - reader: see below
--
-- A level is the lists with the same priority. A script that includes this code calls ordering.use first. For each
-- queue, it calls ordering.sources_of, and then ordering.next_level for one level after the other. It passes the
-- readers of a level to ordering.oldest.

local ordering = {
  lists = {}, -- the places that the script has read
  next_due = INF, -- the time when the next task becomes due, as far as the script has seen
  more = false, -- whether there may be more due tasks than the call can handle
  idle = {}, -- the partitions that have no tasks, by name
  busy = {}, -- partitions that keep due tasks, by name
}

-- The arguments are the key of the list `open`, the maximum number of tasks, and whether any task has a place.
function ordering.use(open, wanted, has_places)
  ordering.plain = { key = open, priority = '0', removed = {} }
  ordering.wanted, ordering.has_places = wanted, has_places
end

-- Ends the claim, although there may be more due tasks.
function ordering.stop() ordering.more = true end

-- A reader reads the due entries of a list, from a rank on. Its fields score, id and at are its next due entry, with
-- the score as a text and as a number. Without a due entry, `at` is INF. If the script has used the entry, `at` is nil.

local PAGE = 100

local function advance(reader)
  if not reader.entries[reader.i] and not reader.ended then
    reader.entries = redis.call('ZRANGE', reader.list.key, reader.rank, reader.rank + reader.page - 1, 'WITHSCORES')
    reader.ended = #reader.entries < 2 * reader.page
    reader.total = reader.total + #reader.entries / 2
    reader.rank, reader.i = reader.rank + reader.page, 1
    reader.page = reader.alone and PAGE or math.min(2 * reader.page, PAGE)
  end
  local i = reader.i
  local id, score = reader.entries[i], reader.entries[i + 1]
  local at = id and score_of(score) or INF
  reader.id, reader.score, reader.at, reader.i = id, score, at, i + 2
  if at > now then
    ordering.next_due = math.min(ordering.next_due, at)
    reader.at, reader.list.exhausted = INF, reader.from_head
  end
end

-- Returns a reader of a list. The reader shares the work with other readers, so its first page is small. But the page
-- of a place also has the next entry, so that refresh need not read it again.
local function reader_of(list, rank, readers)
  local page = math.min(math.ceil(2 * ordering.wanted / readers), ordering.wanted, PAGE)
  local reader = {
    list = list, rank = rank, from_head = rank == 0, entries = {}, i = 1, total = 0,
    page = math.max(page, list.place and 2 or 1), alone = readers == 1,
  }
  list.reader = reader
  return reader
end

-- The readers of a level are a heap: the entry of each reader is older than those of its children. Among entries of the
-- same age, the reader of the partition that comes first is first.

local function is_before(a, b) return a.at < b.at or a.at == b.at and a.number < b.number end

local function sink(heap, i)
  local reader, n = heap[i], #heap
  while 2 * i <= n do
    local child = 2 * i
    if child < n and is_before(heap[child + 1], heap[child]) then child = child + 1 end
    if is_before(reader, heap[child]) then break end
    heap[i] = heap[child]
    i = child
  end
  heap[i] = reader
end

-- Returns the reader whose next due entry is the oldest, or nil. When the script uses this entry, it must set the field
-- `at` of the reader to nil.
function ordering.oldest(readers)
  local first = readers[1]
  if not readers.sorted then
    readers.sorted = true
    for i, reader in ipairs(readers) do
      reader.number = i
      advance(reader)
    end
    for i = math.floor(#readers / 2), 1, -1 do sink(readers, i) end
  elseif not first.at then
    advance(first)
    if readers[2] then sink(readers, 1) end
  end
  first = readers[1]
  return first.at < INF and first or nil
end

-- A source is a partition, with its priorities in descending order. The list `open` is a source with one priority.

-- If a claim reads many partitions, it asks for many of their keys at once.
local MANY, AT_ONCE = 4, 16

-- Returns whether one of some keys exists, and whether all of them do.
local function exist(prefix, names, first)
  local keys = {}
  for i = first, math.min(first + AT_ONCE - 1, #names) do keys[#keys + 1] = prefix .. names[i] end
  local n = redis.call('EXISTS', unpack(keys))
  return n > 0, n == #keys
end

function ordering.sources_of(names)
  local sources, some_later = {}, true
  for i, partition in ipairs(names) do
    if partition == DEFAULT then sources[#sources + 1] = { plain = true, top = '0' } end
    if partition ~= DEFAULT or ordering.has_places then
      if #names > MANY and i % AT_ONCE == 1 then some_later = exist(later, names, i) end
      sources[#sources + 1] = { partition = partition, later = some_later }
    end
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
    ordering.more = ordering.more or #due_now == 500 and spent(2)
  until #due_now < 500 or ordering.more
end

-- A position may have many priorities before it. Since the claim that began at the head of the queue, tasks may have
-- come to these priorities. So a claim looks at the highest ABOVE of them again.
local ABOVE = 10

local function begin(source, from)
  if source.later then promote(source.partition) end
  local above = from and redis.pcall('ZCOUNT', levels .. source.partition, '(' .. from.priority, '+inf')
  source.above = type(above) == 'number' and above or 0
  source.page, source.i, source.at, source.size = {}, 1, 0, 2
end

-- Reads the next priorities of a source. Most claims need only the first one, so the first page is small.
local function read_priorities(source)
  if source.at == ABOVE then source.at = math.max(source.at, source.above) end
  local key, page = levels .. source.partition, {}
  local size = source.at < ABOVE and math.min(source.size, ABOVE - source.at) or source.size
  local read = redis.pcall('ZREVRANGE', key, source.at, source.at + size - 1)
  for _, priority in ipairs(read) do
    if is_priority(priority) then page[#page + 1] = priority else redis.call('ZREM', key, priority) end
  end
  if #read == 0 and source.at == 0 and not source.later then ordering.idle[source.partition] = true end
  if #read > 0 and #page == 0 then ordering.stop() end
  source.page, source.i, source.ended = page, 1, #read < size
  source.at, source.size = source.at + #page, math.min(4 * source.size, PAGE)
end

-- Returns the highest priority of a source that was not read yet, or nil.
local function top_of(source, from)
  if source.plain or source.top ~= nil then return source.top or nil end
  if not source.at then begin(source, from) end
  if source.i > #source.page and not source.ended then read_priorities(source) end
  local top = source.page[source.i]
  source.i, source.top = source.i + 1, top or false
  return top
end

-- Returns the rank in a list at which a claim that continues at a position begins. At a higher priority, it begins with
-- the tasks that have come since the claim that began at the head of the queue.
local function rank_from(list, from)
  if not from then return 0 end
  local level, start = tonumber(list.priority), tonumber(from.priority)
  if level == start then return positions.rank_after(list.key, from) end
  return level > start and redis.call('ZCOUNT', list.key, '-inf', string.format('(%.6f', from.began)) or 0
end

local function list_at(partition, priority)
  local name = join_place(partition, priority)
  local list = { key = places .. name, place = name, partition = partition, priority = priority, removed = {} }
  ordering.lists[#ordering.lists + 1] = list
  return list
end

-- Returns readers for the lists with the highest priority that was not read yet, or nil.
function ordering.next_level(sources, from)
  local highest
  for _, source in ipairs(sources) do
    local top = top_of(source, from)
    if top and (not highest or tonumber(top) > tonumber(highest)) then highest = top end
  end
  if not highest then return nil end
  local readers = {}
  for _, source in ipairs(sources) do
    if source.top == highest then
      local list = source.plain and ordering.plain or list_at(source.partition, highest)
      readers[#readers + 1] = reader_of(list, rank_from(list, from), #sources)
      source.top = nil
      if source.plain then source.top = false end
    end
  end
  return readers
end

-- Returns an error reply if a set that ordering.remove writes has a wrong type.
function ordering.wrong() return #ordering.lists > 0 and not_sorted(placed) or nil end

-- Returns whether a list has a due entry that the claim has read, but not used.
local function has_more(list)
  local reader = list.reader
  if reader.at then return reader.at < INF end
  local score = reader.entries[reader.i + 1]
  return score ~= nil and score_of(score) <= now
end

-- Returns whether the claim removes all tasks of a list.
local function is_emptied(list)
  local reader = list.reader
  return reader.from_head and reader.ended and reader.total == #list.removed
end

-- Removes the claimed tasks from all lists.
function ordering.remove()
  local removed, emptied = {}, {}
  bulk('ZREM', ordering.plain.key, ordering.plain.removed)
  for _, list in ipairs(ordering.lists) do
    bulk('ZREM', list.key, list.removed)
    for _, id in ipairs(list.removed) do removed[#removed + 1] = id end
    if has_more(list) then
      ordering.busy[list.partition] = true
    elseif is_emptied(list) then
      emptied[list.partition] = emptied[list.partition] or {}
      table.insert(emptied[list.partition], list.priority)
    elseif #list.removed > 0 or list.exhausted then
      refresh_place(list.place)
    end
  end
  bulk('ZREM', placed, removed)
  for partition, priorities in pairs(emptied) do bulk('ZREM', levels .. partition, priorities) end
end

-- Lowers next_due to the next time in a set whose scores are times.
function ordering.note_next(key)
  -- The reply is an error if the set has a wrong type.
  local left = redis.pcall('ZRANGEBYSCORE', key, '(' .. now_text, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  if left[2] then ordering.next_due = math.min(ordering.next_due, score_of(left[2])) end
end

-- Notes when the next tasks of partitions become due.
function ordering.note_later(names)
  for _, partition in ipairs(names) do
    if not ordering.idle[partition] then ordering.note_next(later .. partition) end
  end
end

-- Wakes another worker for the due tasks of partitions. If all wake lists have tokens, the script adds none.
function ordering.wake(names)
  local lists = {}
  for _, partition in ipairs(names) do
    local busy = ordering.busy[partition]
    if busy or not ordering.idle[partition] and redis.call('EXISTS', levels .. partition) == 1 then
      lists[#lists + 1] = partition == DEFAULT and 'open' or partition
    end
  end
  for i = 1, #lists, AT_ONCE do
    local all = #lists > MANY and select(2, exist(wakes, lists, i))
    for k = i, all and 0 or math.min(i + AT_ONCE - 1, #lists) do wake(wakes .. lists[k], 1) end
  end
end
