-- ordering: common code of claims. It reads the due tasks of a queue in their order: by priority, and then by age.
--
-- A source reads the set of a requirement, of a group, or the list `open`. Its field `id` is its next task, and
-- ordering.member returns its member (see member_of). The members of all sources have one order, so the smallest of
-- them is the next task. The set `heads` has the first member of each requirement of the queue. So a claim opens a
-- source only when the first task of its requirement is the next one.
--
-- Go decides which requirements a worker serves, and writes them into a hash for all workers that offer the same: the
-- value is the min_time, and behind a semicolon what a task asks for, or nothing. Its field `upto` is the number of the
-- last requirement that Go has seen.
--
-- A claim reads a limited number of tasks. If it meets many that this worker must not get, it keeps the last of them
-- for some seconds in the key `passed:WORKER:QUEUE`, and the next claim continues behind it.

local ordering = {
  next_due = INF, -- when the next task of the list `open` becomes due, as far as the script has seen
  more = false, -- whether the claim ends, although there may be more due tasks
  met = {}, -- requirements for which other workers may be woken
}

-- The arguments are the key of the list `open`, the maximum number of tasks, the key of the hash of what the worker
-- serves, the seconds for which it still runs or nil, its group or '', and whether it claims from the list `open`.
function ordering.use(open, wanted, serves, time_left, group, plain)
  local PAGE, FIRST_PAGE, MOST_SERVED, PASSED_FOR = 100, 16, 1000, 10
  local queue, sources -- the state of the present queue, and its open sources in the order of their next members

  -- Returns whether the worker serves a requirement, by its value in the hash, and what its tasks ask for.
  local function request_in(value)
    if not value then return false end
    local seconds, request = string.match(value, '^([%d.]*);(.*)$')
    if time_left and (tonumber(seconds) or 0) > time_left then return false end
    return true, request ~= '' and fitting.parse(request) or fitting.plain
  end

  local function read_page(source)
    local n = source.size
    source.i, source.size = 1, math.min(4 * n, PAGE)
    if source.rank then
      source.page = try('ZRANGE', open, source.rank, source.rank + n - 1, 'WITHSCORES')
      source.rank, source.ended = source.rank + n, #source.page < 2 * n -- also if the list has a wrong type
    else
      source.page = try('ZRANGEBYLEX', source.key, source.last and '(' .. source.last or '-', '+', 'LIMIT', 0, n)
      source.ended = #source.page < n
    end
  end

  -- Reads the id and the time of the next entry, and its member, if it is not of the list `open`.
  local function read_entry(source)
    if not source.page[source.i] and not source.ended then read_page(source) end
    local entry = source.page[source.i]
    source.member, source.id, source.at = nil, entry, INF
    if not entry then return end
    if source.rank then
      source.at, source.i = score_of(source.page[source.i + 1]) or INF, source.i + 2
    else
      source.id, source.priority, source.at = parse_member(entry)
      source.member, source.last, source.i = entry, entry, source.i + 1
    end
  end

  function ordering.member(source)
    source.member = source.member or member_of(0, source.at, source.id)
    return source.member
  end

  -- Moves a source to its next task. Without a due task, its `id` is then nil. After the clock was set back, tasks that
  -- are not due may come before some that are.
  local function advance(source)
    local early = 0
    while true do
      read_entry(source)
      if not source.id then return end
      if not source.at then
        call('ZREM', source.key, source.member)
      elseif source.at > now then
        ordering.next_due, early = math.min(ordering.next_due, source.at), early + 1
        if source.rank or early > PAGE then
          source.id = nil
          return
        end
      elseif not (source.rank and queue.passed and ordering.member(source) <= queue.passed) then
        return
      end
    end
  end

  local function insert(source)
    if not source.id then return end
    local low, high = 1, #sources + 1
    while low < high do
      local middle = math.floor((low + high) / 2)
      if ordering.member(sources[middle]) < ordering.member(source) then low = middle + 1 else high = middle end
    end
    table.insert(sources, low, source)
  end

  local function open_source(source)
    source.page, source.i, source.last = {}, 1, queue.passed
    source.size = math.max(math.min(wanted, sources[1] and 4 or PAGE), 1)
    advance(source)
    insert(source)
  end

  -- Opens the list `open`. Its tasks have the priority 0.
  local function open_plain()
    local rank, _, priority, at = 0, nil, 0, nil
    if queue.passed then _, priority, at = parse_member(queue.passed) end
    if priority < 0 then return end
    if at and priority == 0 then rank = call('ZCOUNT', open, '-inf', string.format('(%.6f', at)) end
    open_source({ key = open, rank = rank, priority = 0, request = fitting.plain })
  end

  local function note(name)
    if #ordering.met < FIRST_PAGE then table.insert(ordering.met, name) end
  end

  local function open_requirement(entry)
    local source = { key = places .. entry.name, name = entry.name, request = entry.request }
    open_source(source)
    note(entry.name)
    local differs = not source.id or string.sub(source.member, 1, 29) ~= string.sub(entry.head, 1, 29)
    if differs and not queue.passed then touch(entry.name) end
    if fitting.plain then kept.open(entry.name) end
  end

  -- Reads the next entries of `heads`, and removes those that are not first members. If the worker serves none of the
  -- first, but few requirements in all, the script reads the sets of those instead.
  local function read_heads()
    local of_queue, after = heads .. queue.name, queue.last and '(' .. queue.last or '-'
    local page, names, stale, served = try('ZRANGEBYLEX', of_queue, after, '+', 'LIMIT', 0, queue.size), {}, {}, false
    queue.ended, queue.last, queue.values = #page < queue.size, page[#page], {}
    for i, head in ipairs(page) do names[i] = parse_member(head) end
    local first = page[1] and try('HMGET', first_of, unpack(names)) or {}
    if first.err then first = page end
    queue.values = page[1] and call('HMGET', serves, unpack(names)) or {}
    for i, head in ipairs(page) do
      if first[i] ~= head then
        stale[#stale + 1], queue.values[i] = head, false
      end
      served = served or queue.values[i]
    end
    bulk('ZREM', of_queue, stale)
    if not served and not queue.ended and queue.size == FIRST_PAGE and call('HLEN', serves) <= MOST_SERVED then
      page, queue.values, queue.ended = {}, {}, true
      for _, name in ipairs(call('HKEYS', serves)) do
        local next_of = name ~= 'upto' and queue_of(name) == queue.name and try('ZRANGE', places .. name, 0, 0)[1]
        if next_of then table.insert(page, string.sub(next_of, 1, 29) .. name) end
      end
      table.sort(page)
      for i, head in ipairs(page) do queue.values[i] = call('HGET', serves, (parse_member(head))) end
    end
    queue.page, queue.i, queue.size = page, 1, math.min(4 * queue.size, 500)
  end

  -- Returns the next entry of `heads` that the worker serves, or nil.
  local function next_head()
    while not queue.entry do
      local head = queue.page[queue.i]
      if head then
        local is, request = request_in(queue.values[queue.i])
        queue.i = queue.i + 1
        if is then queue.entry = { head = head, name = parse_member(head), request = request } end
      elseif queue.ended then
        return nil
      else
        read_heads()
      end
    end
    return queue.entry
  end

  -- Returns what the tasks of a requirement ask for.
  function ordering.request_of(name)
    local _, request = request_in(call('HGET', serves, name))
    return request or fitting.plain
  end

  -- Begins to read a queue.
  function ordering.begin(name)
    queue, sources = { name = name, page = {}, values = {}, i = 1, size = FIRST_PAGE, ended = group ~= '' }, {}
    queue.began = now
    queue.key = ordering.passed .. name
    local stored = try('GET', queue.key)
    local began, passed = string.match(type(stored) == 'string' and stored or '', '^(%S+) (.*)$')
    began = tonumber(began)
    local _, _, at = parse_member(passed or '')
    if at and began and began <= now and now - began < PASSED_FOR then queue.began, queue.passed = began, passed end
    if group ~= '' then
      open_source({ key = places .. GROUP_SET .. group, mixed = true })
    elseif plain and name == DEFAULT then
      open_plain()
    end
  end

  -- Returns whether the worker serves the task of a group with this place, and its request.
  function ordering.serves(place)
    local name = split_place(place)
    if queue_of(name) ~= queue.name then return false end
    return request_in(call('HGET', serves, name))
  end

  -- Returns the source with the next due task, or nil. When the script has used this task, it must call
  -- ordering.use_up.
  function ordering.next()
    while true do
      local first, entry = sources[1], next_head()
      if entry and not (first and ordering.member(first) < entry.head) then
        queue.entry = nil
        if fitting.fits(entry.request) then
          open_requirement(entry)
        else
          note(entry.name)
          kept.meet(entry.name, entry.head, entry.request)
        end
      elseif not first or first.mixed or fitting.fits(first.request) then
        return first
      else -- the other tasks of the source do not fit either
        table.remove(sources, 1)
        kept.meet(first.name or DEFAULT, ordering.member(first), first.request)
      end
    end
  end

  function ordering.use_up()
    local source = table.remove(sources, 1)
    advance(source)
    insert(source)
  end

  -- Passes the first task, because this worker must not get it.
  function ordering.pass()
    queue.last_passed, queue.n_passed = ordering.member(sources[1]), (queue.n_passed or 0) + 1
  end

  -- Ends the reading of a queue. The next claim reads a few passed tasks again, because others may have come before
  -- them.
  function ordering.leave()
    for i = queue.i, math.min(#queue.page, queue.i + FIRST_PAGE) do
      if queue.values[i] then note((parse_member(queue.page[i]))) end
    end
    if (queue.n_passed or 0) < PAGE and not queue.passed or not queue.last_passed then return end
    call('SET', queue.key, string.format('%.6f ', queue.began) .. queue.last_passed, 'EX', PASSED_FOR)
  end

  -- Wakes other workers for the requirements that the call has met, if these have due tasks.
  function ordering.wake()
    local lists = {}
    for i, name in ipairs(ordering.met) do lists[i] = wakes .. (name == DEFAULT and 'open' or name) end
    if not lists[1] or call('EXISTS', unpack(lists)) == #lists then return end
    for i, head in ipairs(try('HMGET', first_of, unpack(ordering.met))) do
      if head then wake(lists[i], 1) end
    end
  end
end
