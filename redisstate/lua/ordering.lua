-- ordering: common code of claims. It reads the due tasks of a queue in their order: by priority, and then by age.
--
-- A source reads the set of a requirement, of a group, or the list `open`. Its fields `member` and `id` are those of
-- its next task. The members of all sources have one order (see member_of), so the smallest is that of the next task.
-- The set `heads` has the first member of each requirement of the queue, so a claim opens a source only when its first
-- task is the next one.
--
-- Go decides which requirements a worker serves, and writes them into a hash for all workers that offer the same: the
-- value is the min_time, and behind a semicolon what a task asks for, or nothing (redisstate/serving.go).
--
-- A claim reads a limited number of tasks. If it passes many that this worker must not get, the key
-- `passed:WORKER:QUEUE` has the last of them. The next claims continue behind it, until the key expires.

local ordering = {
  next_due = INF, -- when the next task that the claim has seen becomes due
  more = false, -- whether the claim ends, although there may be more due tasks
  met = {}, -- some of the requirements that the worker serves, for which others may be woken
}

-- The arguments are the key of the list `open`, the maximum number of tasks, the key of the hash of what the worker
-- serves, the seconds for which it still runs or nil, its group or '', and whether it claims from the list `open`.
function ordering.use(open, wanted, serves, time_left, group, plain)
  local PAGE, FIRST_PAGE, MOST_SERVED, PASSED_FOR = 100, 16, 1000, 10
  local queue, sources -- the state of the present queue, and its open sources in the order of their next members
  local passed_members, passed_further = {}, {} -- by key; the second ones keep the time for which they hold

  -- Returns whether the worker serves a requirement, and what its tasks ask for. The value in the hash may be given.
  function ordering.serves(name, value)
    if value == nil then value = call('HGET', serves, name) end
    local seconds, request = string.match(value or '', '^([^;]*);(.*)$')
    if not seconds or time_left and (number(seconds, 0) or 0) > time_left then return false, fitting.plain end
    return true, request ~= '' and fitting.parse(request) or fitting.plain
  end

  local function read_page(source)
    local n, page = source.size, nil
    if source.rank then
      n = math.min(n, source.due - source.rank)
      page = n > 0 and try('ZRANGE', open, source.rank, source.rank + n - 1) or {}
      source.rank = source.rank + n
    else
      page = try('ZRANGEBYLEX', source.key, source.last and '(' .. source.last or '-', '+', 'LIMIT', 0, n)
      source.last = page[#page]
    end
    source.page, source.i, source.size = page, 1, math.min(4 * n, PAGE)
    source.ended = #page < n or source.rank and source.rank == source.due -- also if the set has a wrong type
  end

  -- Returns when the next task of a source became due. Most claims of tasks of the list `open` need neither that nor
  -- their members, so they do not make Redis print all scores.
  function ordering.time_of(source)
    source.at = source.at or score_of(call('ZSCORE', open, source.id))
    return source.at
  end

  local function member_in(source)
    source.member = source.member or member_of(0, text(ordering.time_of(source)), source.id)
    return source.member
  end

  -- Moves a source to its next task. Without a due task, its `id` is then nil. The tasks of a requirement were due when
  -- they entered its set.
  local function advance(source)
    while true do
      if not source.page[source.i] and not source.ended then read_page(source) end
      local entry, i = source.page[source.i], source.i
      source.id, source.member, source.at, source.i = entry, nil, nil, i + 1
      if entry and not source.rank then
        source.member = entry
        source.id, source.priority, source.at = parse_member(entry)
      end
      if not entry then
        local following = source.rank and call('ZRANGE', open, source.due, source.due, 'WITHSCORES')[2]
        if following then ordering.next_due = math.min(ordering.next_due, score_of(following)) end
        return
      elseif not (source.rank or source.at) then
        drop(source.key, entry)
      elseif not queue.passed or member_in(source) > queue.passed then
        return
      end
    end
  end

  local function insert(source)
    if not source.id then return end
    local low, high = 1, #sources + 1
    while low < high do
      local middle = math.floor((low + high) / 2)
      if member_in(sources[middle]) < member_in(source) then low = middle + 1 else high = middle end
    end
    table.insert(sources, low, source)
  end

  local function open_source(source)
    source.page, source.i, source.last = {}, 1, queue.passed
    source.size = math.max(math.min(wanted, sources[1] and 4 or PAGE), 1)
    advance(source)
    insert(source)
  end

  local function open_requirement(source)
    local name, head = source.name, source.member
    if not fitting.fits(source.request) then return kept.meet(name, head, source.request) end
    open_source(source)
    if not queue.passed and string.sub(source.id and source.member or '', 1, 29) ~= string.sub(head, 1, 29) then
      drop(heads .. queue.name, head)
      touch(name)
    end
    if fitting.plain then kept.open(name) end
  end

  -- Adds a requirement to the next ones, if the worker serves it. Its value in the hash says so.
  local function add_head(head, value)
    local name, _, at = parse_member(head)
    if not at or queue.seen[name] then return drop(heads .. queue.name, head) end
    queue.seen[name] = true
    local is, request = ordering.serves(name, value)
    if not is then return end
    table.insert(queue.next, { member = head, name = name, key = places .. name, request = request })
    if #ordering.met < FIRST_PAGE then table.insert(ordering.met, name) end
  end

  -- Reads the next entries of `heads`. If the worker serves none of the first, but few requirements in all, the script
  -- reads the sets of those instead.
  local function read_heads()
    local after, names = queue.last and '(' .. queue.last or '-', {}
    local page = try('ZRANGEBYLEX', heads .. queue.name, after, '+', 'LIMIT', 0, queue.size)
    queue.next, queue.i, queue.last, queue.ended = {}, 1, page[#page], #page < queue.size
    for i, head in ipairs(page) do names[i] = parse_member(head) end
    for i, value in ipairs(page[1] and call('HMGET', serves, unpack(names)) or {}) do add_head(page[i], value) end
    if not queue.next[1] and not queue.ended and queue.size == FIRST_PAGE and call('HLEN', serves) <= MOST_SERVED then
      queue.ended = true
      local served = call('HGETALL', serves)
      for i = 1, #served, 2 do
        local other = not queue.seen[served[i]] and queue_of(served[i]) == queue.name
        local head = other and try('HGET', first_of, served[i])
        if type(head) == 'string' then add_head(head, served[i + 1]) end
      end
      table.sort(queue.next, function(a, b) return a.member < b.member end)
    end
    queue.size = math.min(4 * queue.size, 500)
  end

  -- Begins to read a queue.
  function ordering.begin(name)
    queue = { name = name, next = {}, i = 1, size = FIRST_PAGE, ended = group ~= '', seen = {} }
    queue.n_passed, sources = 0, {}
    local key = ordering.passed .. name
    local passed = try('GET', key)
    local left = type(passed) == 'string' and call('TTL', key) or -1 -- too long if the clock was set back
    local _, priority, at = parse_member(left >= 0 and left <= PASSED_FOR and passed or '')
    queue.passed = at and passed
    if group ~= '' then
      open_source({ key = places .. GROUP_SET .. group, mixed = name })
    elseif plain and name == DEFAULT then
      local rank = 0
      if queue.passed and priority <= 0 then
        rank = call('ZCOUNT', open, '-inf', priority < 0 and '+inf' or string.format('(%.6f', at))
      end
      local due = call('ZCOUNT', open, '-inf', now_text)
      open_source({ key = open, rank = rank, due = due, priority = 0, request = fitting.plain })
    end
  end

  -- Returns the source with the next due task, or nil. When the script has used this task, it must call
  -- ordering.use_up.
  function ordering.next()
    if sources[1] and sources[1].used then
      local source = table.remove(sources, 1)
      source.used = false
      advance(source)
      insert(source)
    end
    while true do
      while not queue.next[queue.i] and not queue.ended do read_heads() end
      local first, head = sources[1], queue.next[queue.i]
      if head and not (first and member_in(first) < head.member) then
        queue.i = queue.i + 1
        open_requirement(head)
      elseif not first or first.mixed or fitting.fits(first.request) then
        return first
      else -- the other tasks of the source do not fit either
        table.remove(sources, 1)
        kept.meet(first.name or DEFAULT, member_in(first), first.request)
      end
    end
  end

  -- Leaves the first task. If `passes` is true, the worker must not get it.
  function ordering.use_up(passes)
    local source = sources[1]
    source.used = true -- a claim that has got enough need not read the next task
    if passes then queue.last_passed, queue.n_passed = member_in(source), queue.n_passed + 1 end
  end

  -- Ends the reading of a queue. The next claim reads a few passed tasks again, because others may have come before
  -- them.
  function ordering.leave()
    if queue.last_passed and (queue.passed or queue.n_passed >= PAGE) then
      local of = queue.passed and passed_further or passed_members
      of[ordering.passed .. queue.name] = queue.last_passed
    end
  end

  -- Writes which tasks the claim has passed. If `wakes_others` is true, the function wakes other workers for the
  -- requirements that the claim has met, if these have due tasks.
  function ordering.finish(wakes_others)
    for key, member in pairs(passed_members) do call('SET', key, member, 'EX', PASSED_FOR) end
    for key, member in pairs(passed_further) do call('SET', key, member, 'KEEPTTL') end
    local lists = {}
    for i, name in ipairs(ordering.met) do lists[i] = wakes .. (name == DEFAULT and 'open' or name) end
    if not wakes_others or not lists[1] or call('EXISTS', unpack(lists)) == #lists then return end
    for i, head in ipairs(try('HMGET', first_of, unpack(ordering.met))) do
      if head then wake(lists[i], 1) end
    end
  end
end
