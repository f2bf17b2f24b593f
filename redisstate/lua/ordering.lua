-- ordering: common code of claims. It reads the due tasks of a queue in their order: by priority, and then by age.
--
-- A list is a sorted set of open tasks: the list `open` or a place (see places.lua). A list has these fields:
-- - key, priority, and place, which is nil for the list `open`
-- - removed: the ids that the claim removes from it; changed: whether the claim changes it in other ways
-- - from_head, exhausted: whether the claim has read it from its head, and all of its due tasks
-- - entries, i, rank, page, total, ended: the page that the claim has read last, the index of its next entry, where the
--   next page begins, and its size, the number of entries read, and whether there are no more
--
-- A source reads the due tasks of a partition, or of the list `open`: one list after the other, by priority. The open
-- sources of a queue are a heap, with the source of the next task first. The set `heads` has the first task of each
-- partition, in order. So the script opens a source only when the first task of its partition is the next one. A claim
-- opens as many sources as it needs, however many partitions the queue has.
--
-- The set `heads` also has the partitions that the worker does not serve. A claim passes a limited number of them. The
-- next claim then continues after them (see positions.lua).
--
-- Some claims begin at a position, because there are tasks that the worker does not want. The sources before the
-- position then begin there, too. If there are more than MOST_PASSED of them, claims sweep instead: they read one
-- source after the other to its end, in the order of `heads`.
--
-- A script calls ordering.use first. For each queue, it calls ordering.begin, and then ordering.next for each task.

local ordering = {
  lists = {}, -- the places that the script has read
  sources = {}, -- all sources that the script has opened for a partition
  stale = {}, -- members of `heads` to remove, by queue
  waking = {}, -- partitions that may have due tasks
  next_due = INF, -- the time when the next task becomes due, as far as the script has seen
  more = false, -- whether the claim ends, although there may be more due tasks
}

-- The arguments are the key of the list `open`, the maximum number of tasks, and what the worker offers: the sets of
-- its tags and handlers, whether it runs programs, whether it handles all programs, and the group that it serves. This
-- function creates the others. So they take the outer locals from it, which is faster than to find each of them in the
-- script. And a script may have only about 180 locals at once.
function ordering.use(open, wanted, offer)
  ordering.plain = { key = open, priority = '0', removed = {} }
  ordering.wanted = wanted
  ordering.fruitless = 0 -- lists without a due task

  local PAGE = 100
  local MOST_PASSED, MOST_FRUITLESS = 100, 500
  local MOST_ENTRIES, FIRST_ENTRIES = 2000, 100 -- entries of `heads`
  local MOST_PROMOTED = 100 -- partitions
  local MOST_WOKEN = 16 -- partitions

  -- Reads the next entry of the source's list: its fields id, score and at are the id, the score as a text, and the
  -- score as a number. Without a due entry, `at` is INF.
  local function read_entry(source)
    local list = source.list
    if not list.entries[list.i] and not list.ended then
      list.entries = redis.pcall('ZRANGE', list.key, list.rank, list.rank + list.page - 1, 'WITHSCORES')
      list.ended = #list.entries < 2 * list.page -- also if the set has a wrong type
      list.total = list.total + #list.entries / 2
      list.rank, list.i, list.page = list.rank + list.page, 1, math.min(4 * list.page, PAGE)
    end
    local i = list.i
    local id, score = list.entries[i], list.entries[i + 1]
    local at = id and score_of(score) or INF
    source.id, source.score, source.at, list.i = id, score, at, i + 2
    if at > now then
      if at < ordering.next_due then ordering.next_due = at end
      source.at, list.exhausted = INF, list.from_head
    end
  end

  -- Returns the rank in a list at which a claim that continues at a position begins. At a higher priority, it begins
  -- with the tasks that have come since the claim that began at the head of the queue.
  local function rank_from(list, from)
    if not from or not_sorted(list.key) then return 0 end
    local level, start = tonumber(list.priority), tonumber(from.priority)
    if level == start then return positions.rank_after(list.key, from) end
    return level > start and redis.call('ZCOUNT', list.key, '-inf', string.format('(%.6f', from.began)) or 0
  end

  local function enter_list(source, list)
    source.list, source.priority, list.rank = list, tonumber(list.priority), rank_from(list, source.from)
    list.from_head, list.entries, list.i, list.total, list.ended = list.rank == 0, {}, 1, 0, false
    -- The page of a place also has the next entry, so that a claim knows whether due tasks stay.
    list.page = math.max(math.min(ordering.wanted, source.alone and PAGE or 4), list.place and 2 or 1)
    read_entry(source)
    if source.at == INF and list.from_head then ordering.fruitless = ordering.fruitless + 1 end
  end

  local queue -- the state of the present queue: see ordering.begin

  local function is_before(a, b)
    if a.at == INF or b.at == INF then return a.at < b.at end
    if a.priority ~= b.priority then return a.priority > b.priority end
    return a.at < b.at or a.at == b.at and a.number < b.number
  end

  local function sink(heap, i)
    local source, n = heap[i], #heap
    while 2 * i <= n do
      local child = 2 * i
      if child < n and is_before(heap[child + 1], heap[child]) then child = child + 1 end
      if is_before(source, heap[child]) then break end
      heap[i] = heap[child]
      i = child
    end
    heap[i] = source
  end

  local function push(heap, source)
    local i = #heap + 1
    while i > 1 and is_before(source, heap[math.floor(i / 2)]) do
      heap[i] = heap[math.floor(i / 2)]
      i = math.floor(i / 2)
    end
    heap[i] = source
  end

  local function add_source(source, from)
    queue.number = queue.number + 1
    source.number, source.from, source.alone = queue.number, from, queue.number == 1
    return source
  end

  -- Returns whether the worker serves a partition of one of its queues, and may claim one of its tasks now. Also
  -- returns what the tasks ask for, and whether they fit when the worker runs nothing.
  local function is_served(partition)
    local before, handler = partition, nil
    local at = string.find(partition, 'handler=', 1, true)
    if at then before, handler = string.sub(partition, 1, at - 1), string.sub(partition, at + 8) end
    if handler and not (offer.anything or offer.handlers[handler]) then return false end
    if not handler and not offer.programs then return false end
    if offer.group ~= '' and string.match(';' .. before, ';group=([^;]*)') ~= offer.group then return false end
    for tag in string.gmatch(string.match(before, 'tags=([^;]*)') or '', '[^,]+') do
      if not offer.tags[tag] then return false end
    end
    local may, request = fitting.request_of(before)
    return may and fitting.fits(request), request, may and fitting.possible(request)
  end

  local function enter_place_of(source, priority)
    local partition, name = source.partition, join_place(source.partition, priority)
    local list = { key = places .. name, place = name, partition = partition, priority = priority, removed = {} }
    ordering.lists[#ordering.lists + 1] = list
    enter_list(source, list)
  end

  -- A position may have many priorities before it. Since the claim that began at the head of the queue, tasks may
  -- have come to these priorities. So a claim looks at the highest ABOVE of them again.
  local ABOVE = 10

  -- Reads some priorities of a source, from a rank on. The first page is small, because most claims need few
  -- priorities.
  local function read_priorities(source)
    if source.level == ABOVE and source.from then
      local above = redis.pcall('ZCOUNT', levels .. source.partition, '(' .. source.from.priority, '+inf')
      source.level = math.max(source.level, type(above) == 'number' and above or 0)
    end
    local size = source.level < ABOVE and math.min(source.levels_page, ABOVE - source.level) or source.levels_page
    local read = redis.pcall('ZREVRANGE', levels .. source.partition, source.level, source.level + size - 1)
    local good, foreign = {}, {}
    for _, priority in ipairs(read) do table.insert(is_priority(priority) and good or foreign, priority) end
    bulk('ZREM', levels .. source.partition, foreign)
    if #foreign > 0 then source.stale = true end
    if #read > 0 and #good == 0 then ordering.more = true end
    source.levels, source.next_level, source.levels_end = good, 1, #read < size
    source.level, source.levels_page = source.level + #good, math.min(4 * source.levels_page, PAGE)
  end

  -- Returns the next priority of a source, or nil.
  local function next_priority(source)
    while not ordering.more do
      local priority = source.levels[source.next_level]
      if priority then
        source.next_level = source.next_level + 1
        if tonumber(priority) < source.priority then return priority end
        if source.first and tonumber(priority) > source.first then source.stale = true end
      elseif source.levels_end then
        return nil
      else
        read_priorities(source)
      end
    end
  end

  -- Moves a source whose list has no more due entries to its next list that has some.
  local function skip_lists(source)
    while source.at == INF and source.partition do
      local priority = next_priority(source)
      if not priority then return end
      ordering.more = ordering.fruitless >= MOST_FRUITLESS
      if ordering.more then return end
      enter_place_of(source, priority)
    end
  end

  -- Opens a partition. Its entry of `heads` is nil if the script has not read it.
  local function open_partition(partition, entry, from)
    local request
    if entry then request = entry.request else request = select(2, is_served(partition)) end
    if queue.opened[partition] then -- the entry is stale
      if entry then queue.stale[#queue.stale + 1] = entry.member end
      return
    end
    local source = add_source({
      partition = partition, entry = entry, priority = INF, at = INF, request = request,
      levels = {}, next_level = 1, level = 0, levels_page = 2,
    }, from)
    queue.opened[partition] = true
    ordering.sources[#ordering.sources + 1] = source
    if entry and not from then
      source.first = entry.priority
      enter_place_of(source, string.format('%.0f', entry.priority))
      source.stale = source.at == INF or math.abs(source.at - entry.score) > 0.000002
    end
    skip_lists(source)
    push(queue.heap, source)
  end

  -- Returns whether an entry of `heads` comes before a task.
  local function comes_before(entry, priority, score)
    return entry.priority > priority or entry.priority == priority and entry.score < score
  end

  -- Reads the next entries of `heads`. After FIRST_ENTRIES that the worker does not serve, or for which it has too
  -- little free, the script continues where earlier claims have met other entries. But a worker that is kept for a task
  -- must meet this task.
  local function read_page()
    if queue.read >= FIRST_ENTRIES and not queue.suits and not queue.jumped and not reserving.queue then
      queue.jumped = positions.passed_heads(queue.position)
      local _, priority, score = parse_head(queue.last)
      local to, there = queue.jumped.member, queue.jumped
      if to and not comes_before(there, priority or -INF, score or INF) then queue.last = to end
    end
    local after = queue.last and '(' .. queue.last or '-'
    queue.page = redis.pcall('ZRANGEBYLEX', heads .. queue.name, after, '+', 'LIMIT', 0, queue.size)
    queue.i, queue.ended = 1, #queue.page < queue.size -- also if the set has a wrong type
    queue.read, queue.size = queue.read + #queue.page, math.min(4 * queue.size, 500)
  end

  local function read_head(member)
    local partition, priority, score = parse_head(member)
    local sound = priority and score and score >= 0 and priority >= -2147483648 and priority <= 2147483647
    if not sound or queue_of(partition) ~= queue.name then
      queue.stale[#queue.stale + 1] = member
    else
      local fits, request, possible = is_served(partition)
      if not possible then return nil end
      if fits then queue.suits = true end
      return { member = member, partition = partition, priority = priority, score = score, request = request }
    end
  end

  -- Returns the next entry of `heads` that the worker serves, or nil.
  local function next_head()
    while not queue.entry do
      if not queue.page[queue.i] then
        queue.cut = not queue.ended and queue.read >= MOST_ENTRIES
        if queue.ended or queue.cut then return nil end
        read_page()
      else
        queue.last = queue.page[queue.i]
        queue.entry, queue.i = read_head(queue.last), queue.i + 1
      end
    end
    return queue.entry
  end

  -- Moves the priorities of a partition whose first task has become due from `later` to `levels`. Returns false if
  -- there are too many of them for one call.
  local function promote(partition)
    local due_now = redis.pcall('ZRANGEBYSCORE', later .. partition, '-inf', now_text, 'LIMIT', 0, 500)
    local entries = {}
    for _, priority in ipairs(due_now) do
      if is_priority(priority) then entries[#entries + 1], entries[#entries + 2] = priority, priority end
    end
    if not not_sorted(levels .. partition) then
      bulk('ZADD', levels .. partition, entries)
      bulk('ZREM', later .. partition, due_now)
    end
    note_head(partition, nil, true)
    return #due_now < 500
  end

  -- Promotes the partitions of a queue that have become due. If there are too many of them for one call, the claim
  -- ends, because a priority that stays in `later` may be the highest.
  local function promote_all(name)
    local coming_now = redis.pcall('ZRANGEBYSCORE', coming .. name, '-inf', now_text, 'LIMIT', 0, MOST_PROMOTED)
    for i, partition in ipairs(coming_now) do
      if queue_of(partition) ~= name then
        redis.call('ZREM', coming .. name, partition)
      elseif not promote(partition) or i == MOST_PROMOTED or i % 16 == 0 and spent(2) then
        ordering.more = true
        break
      end
    end
    if #coming_now > 0 then refresh_heads() end
  end

  -- Opens the partition of the next entry. Returns false if there are too many partitions before the position.
  local function open_next()
    local entry, from = queue.entry, queue.from
    queue.entry = nil
    if queue.sweep then queue.sweep = entry.member end
    if from and not comes_before(entry, tonumber(from.priority), score_of(from.score) + 0.000001) then from = nil end
    if from then queue.passed = queue.passed + 1 end
    if queue.passed > MOST_PASSED then return false end
    open_partition(entry.partition, entry, from)
    return true
  end

  -- Passes the next entry, whose task does not fit in what the worker has free. A task that would fit, if nothing was
  -- kept back, is for other workers.
  local function pass_blocked()
    local entry = queue.entry
    queue.entry = nil
    if (reserving.on or reserving.queue) and #ordering.waking < MOST_WOKEN then
      table.insert(ordering.waking, entry.partition)
    end
    if queue.sweep then queue.sweep = entry.member end
    reserving.meet(entry.partition, entry.priority, entry.score, entry.request)
  end

  -- Returns whether the script has read all entries of `heads` that come before a source.
  local function is_next(source)
    local _, priority, score = parse_head(queue.last)
    return not comes_before({ priority = priority or INF, score = score or 0 }, source.priority, source.at)
  end

  -- Returns the time when the next tasks of a queue become due, or INF. If the first partitions are not for this
  -- worker, the time may be too early.
  function ordering.next_coming(name)
    local left = redis.pcall('ZRANGEBYSCORE', coming .. name, '(' .. now_text, '+inf', 'WITHSCORES', 'LIMIT', 0, 16)
    for i = 1, #left, 2 do
      if i == 31 or queue_of(left[i]) == name and is_served(left[i]) then return score_of(left[i + 1]) or INF end
    end
    return INF
  end

  -- Begins to read a queue, at a position or nil. The second argument is the name for its positions.
  function ordering.begin(name, position, from)
    queue = {
      name = name, position = position, from = from, sweep = from and from.base, began = from and from.began or now,
      heap = {}, number = 0, opened = {}, passed = 0,
      page = {}, i = 1, size = 16, read = 0, stale = {},
    }
    ordering.queue = queue
    promote_all(name)
    if queue.sweep then queue.from = nil end
    if (queue.sweep or '') ~= '' then
      queue.last = queue.sweep
      open_partition((parse_head(queue.sweep)), nil, from)
    elseif name == DEFAULT and offer.programs and offer.group == '' and fitting.possible(fitting.plain) then
      -- It comes before the partitions of the queue, if tasks are of the same age.
      local source = add_source({ request = fitting.plain }, from)
      source.alone = fitting.fits(fitting.plain)
      enter_list(source, ordering.plain)
      push(queue.heap, source)
    end
  end

  -- Returns the source with the next due task, or nil. When the script has used this task, it must set the field `at`
  -- of the source to nil.
  function ordering.next()
    local heap = queue.heap
    if heap[1] and not heap[1].at then
      read_entry(heap[1])
      if heap[1].partition then skip_lists(heap[1]) end
      sink(heap, 1)
    end
    while not ordering.more do
      local first = heap[1] and heap[1].at < INF and heap[1]
      local alone = first and queue.sweep
      local entry = not alone and next_head()
      if not alone and queue.cut and not (first and is_next(first)) then
        ordering.more = true
      elseif entry and not (first and not comes_before(entry, first.priority, first.at)) then
        if not fitting.fits(entry.request) then
          pass_blocked()
        elseif not open_next() then -- the next call reads the tasks of this one again, so it must not be the same call
          queue.passes_too_many, ordering.more = true, true
        end
      elseif not first or fitting.fits(first.request) then
        return first
      else -- the other tasks of the source do not fit either
        reserving.meet(first.partition or DEFAULT, first.priority, first.at, first.request)
        first.at = INF
        sink(heap, 1)
      end
    end
  end

  -- Ends the reading of a queue. If the call has read as many entries of `heads` as a call may, the next call continues
  -- after them: at once if the worker serves none of them, or else in a sweep, if the argument allows to begin one. A
  -- call that passes too many partitions also begins a sweep. Returns where the next call continues with a sweep, or
  -- nil.
  function ordering.leave(may_sweep)
    for partition in pairs(queue.opened) do table.insert(ordering.waking, partition) end
    local first, n = queue.heap[1], 0
    if queue.entry then queue.i = queue.i - 1 end
    for i = queue.i, #queue.page do
      local partition = parse_head(queue.page[i])
      if n < MOST_WOKEN and queue_of(partition) == queue.name and is_served(partition) then
        n = n + 1
        table.insert(ordering.waking, partition)
      end
    end
    if queue.stale[1] then ordering.stale[queue.name] = queue.stale end
    if queue.cut and not queue.suits and not reserving.queue and not reserving.on then
      positions.keep_passed_heads(queue.position, queue.jumped, queue.last)
    end
    if not queue.sweep then
      if not (queue.passes_too_many or queue.cut and queue.suits and may_sweep) then return nil end
      queue.began = now
      return ''
    end
    local under_way = first and (not first.at or first.at < INF)
    return under_way and queue.sweep or queue.last or queue.sweep
  end

  -- Removes the claimed tasks from their lists. The script must call finish_places afterwards.
  function ordering.remove()
    local removed, emptied, touched = {}, {}, {}
    for _, source in ipairs(ordering.sources) do
      local list = source.list
      local at = source.at or score_of(list.entries[list.i + 1] or '') or INF
      if list then list.has_more = at <= now end -- the earlier lists of the source have no more due tasks
    end
    for _, list in ipairs(ordering.lists) do
      bulk('ZREM', list.key, list.removed)
      for _, id in ipairs(list.removed) do removed[#removed + 1] = id end
      if #list.removed > 0 or list.changed or list.exhausted then
        touched[list.partition] = true
        if list.from_head and list.ended and list.total == #list.removed and not list.changed then
          table.insert(into(emptied, list.partition), list.priority)
        elseif not list.has_more then
          refresh_place(list.place)
        end
      end
    end
    bulk('ZREM', placed, removed)
    for partition, priorities in pairs(emptied) do bulk('ZREM', levels .. partition, priorities) end
    for _, source in ipairs(ordering.sources) do
      local partition = source.partition
      if source.stale or touched[partition] then note_head(partition, source.entry and source.entry.member) end
    end
    for name, members in pairs(ordering.stale) do
      bulk('ZREM', heads .. name, members)
      for _, member in ipairs(members) do
        local partition = parse_head(member)
        if queue_of(partition) == name then note_head(partition) end
      end
    end
  end

  -- Wakes other workers for the partitions that the call has met, if these have due tasks.
  function ordering.wake()
    local lists = {}
    for _, partition in ipairs(ordering.waking) do
      if head_now[partition] ~= '' then lists[#lists + 1] = wakes .. (partition == DEFAULT and 'open' or partition) end
    end
    for i = 1, #lists, MOST_WOKEN do
      local last = math.min(i + MOST_WOKEN - 1, #lists)
      if redis.call('EXISTS', unpack(lists, i, last)) < last - i + 1 then
        for k = i, last do wake(lists[k], 1) end
      end
    end
  end
end
