-- places: common code for the open tasks with a place (docs/redis.md, "Open tasks"). Claims find the other open tasks
-- in the list `open`, which the original TDF changes, too.
--
-- The property `place` of such a task names the set that has it, and its priority: see split_place. Most sets are those
-- of requirements. A held task is in the set of its reason, such as `limit=KEY`, and claims do not meet it. A task that
-- is not due yet is only in the set `later`. The set `placed` has all tasks with a place, each with its time.
--
-- For each queue, a set `heads` has the first member of each requirement, with its name instead of the id. The hash
-- `first` has the members of all these sets by requirement, so that a script knows what to replace.
--
-- A script calls use_places first, if any of its tasks may have a place. It then calls enter_place and leave_place for
-- each task, and finish_places at the end.

-- The keys of the sets and the hash above, and of others that docs/redis.md describes.
local placed, later, requirements, first_of, held, unlinked
local places, heads, wakes -- prefixes of keys

local DEFAULT = 'default' -- the requirement of tasks that any worker may run
local GROUP_SET = 'group=' -- the beginning of the names of sets of groups, as in the property `place`

local split_place, queue_of, member_of, parse_member
local touch, drop, take_member, enter_place, leave_place, wrong_place, no_place, promote
local function finish_places() end

-- The argument is the key of the list `open`. A call without open tasks does not create the functions.
local function use_places(open)
  local prefix = string.sub(open, 1, -1 - #'open')
  places, placed, later, held = open .. ':', open .. ':placed', prefix .. 'later', prefix .. 'held'
  requirements, first_of, unlinked = prefix .. 'requirements', prefix .. 'first', prefix .. 'unlinked'
  heads, wakes = prefix .. 'heads:', prefix .. 'wake:'
  local MOST_REQUIREMENTS, KEPT_REQUIREMENTS = 10000, 11000 -- with due tasks, and all that Redis remembers
  local MOST_OF_ONE = MOST_REQUIREMENTS / 4 -- with tasks of one submitter

  local split = {} -- what split_place has returned, because most tasks of a call have few places

  -- Returns what a place says: the name of the requirement, or of the reason; the key of its set; the priority; for a
  -- task with by_group the key of the group's set; for a held task its home, which is the place to which it returns;
  -- and whether claims read the set. They do not if its tasks are held, wait for others, or are those of TaskStore.
  function split_place(place)
    if split[place] then return split[place] end
    local reason, home = string.match(place, '^([^\n]*)\n(.*)$')
    local group, rest = string.match(home or place, '^group=([^;]*);(.*)$')
    rest = rest or home or place
    local priority, name = string.match(rest, '^priority=(%-?%d+);?(.*)$')
    local n = priority and tonumber(priority)
    if not n or n < -2147483648 or n > 2147483647 then name, n = rest, 0 end
    if name == '' then name = DEFAULT end
    if reason then name, group = reason, nil end
    local is_held = string.find(name, '^limit=') or string.find(name, '^paused=') or string.find(name, '^source=')
    split[place] = {
      name = name, key = (is_held and prefix .. 'held:' or places) .. name, priority = n, home = home, held = is_held,
      of_group = group and places .. GROUP_SET .. group,
      claimed = not (is_held or name == 'waiting' or string.find(name, '^taskstore=')),
    }
    return split[place]
  end

  function queue_of(name) return string.match(name, '^queue=([^;]+)') or DEFAULT end

  -- Returns the member of a set for a task. Redis orders members by priority, by time, and by id. Most times are texts
  -- such as '1795229855.374808', as members have them.
  local before = {} -- the beginnings of members, by priority
  function member_of(priority, at, id)
    before[priority] = before[priority] or string.format('%010.0f ', 2147483647 - priority)
    if #at ~= 17 or string.byte(at, 11) ~= 46 or string.byte(at) == 45 then -- '.' and '-'
      at = string.format('%017.6f', math.min(number(at) or 0, 9999999999))
    end
    return before[priority] .. at .. ' ' .. id
  end

  -- Returns the id, or the requirement in `heads`, the priority and the time of a member. Foreign members have no time.
  function parse_member(member)
    local inverted, at = tonumber(string.sub(member, 1, 10)), tonumber(string.sub(member, 12, 28))
    return string.sub(member, 30), inverted and 2147483647 - inverted, inverted and at
  end

  local SOON = 0.01 -- an opened task becomes due some µs later, so that tasks keep their order; it counts as due
  local touched, arrived = {}, {} -- requirements and reasons: those whose first member may differ, and arrivals

  function touch(name) touched[name] = true end

  local removed = {} -- members, by the keys of the sets
  function drop(key, member)
    local of = into(removed, key)
    of[#of + 1] = member
  end

  -- Removes a member from the sets that have its task. The argument `place` is the property of the task.
  function take_member(place, member)
    local p = split_place(place)
    drop(p.key, member)
    if p.of_group then drop(p.of_group, member) end
    if p.claimed then touch(p.name) end
  end

  local entering, leaving = {}, {} -- by place

  function enter_place(place, at, id) put(into(entering, place), at, id) end

  function leave_place(place, id) table.insert(into(leaving, place), id) end

  local function leave(place, ids)
    local p = split_place(place)
    local times = scores_of(placed, ids)
    for i, id in ipairs(ids) do
      if times[i] then take_member(place, member_of(p.priority, times[i], id)) end
    end
    if p.claimed then bulk('ZREM', later, ids, try) end
    if p.name == 'waiting' then bulk('ZREM', unlinked, ids) end
    bulk('ZREM', placed, ids)
  end

  -- If there are many requirements, each new one removes some that have no due tasks. The last number stays. Idle
  -- workers do not wait for tokens of a new requirement yet, so the function wakes some of any kind.
  local function number_requirement(name)
    if type(try('ZSCORE', requirements, name)) == 'string' then return end
    local last = try('ZREVRANGE', requirements, 0, 0, 'WITHSCORES')
    try('ZADD', requirements, string.format('%.0f', (tonumber(last[2]) or 0) + 1), name)
    wake(wakes .. 'requirements', MOST_TOKENS)
    if try('ZCARD', requirements) <= KEPT_REQUIREMENTS then return end
    for _, idle in ipairs(try('ZRANDMEMBER', requirements, 32)) do
      if idle ~= name and call('HEXISTS', first_of, idle) == 0 then call('ZREM', requirements, idle) end
    end
  end

  -- Collects the new entries of a place, by the keys of the sets.
  local function enter(place, of, added)
    local p = split_place(place)
    local name, in_placed, waiting = p.name, into(added, placed), into(added, later)
    local members, due = into(added, p.key), p.claimed and now + SOON or INF
    local of_group, first = p.of_group and into(added, p.of_group), #members
    for i = 1, #of, 2 do
      local at, id = of[i], of[i + 1]
      put(in_placed, at, id)
      if (number(at) or 0) > due then
        put(waiting, at, id)
      else
        local member = member_of(p.priority, at, id)
        put(members, 0, member)
        if of_group then put(of_group, 0, member) end
      end
    end
    if p.held then
      if try('ZADD', held, 'NX', now_text, name) == 1 then wake(wakes .. 'server', 1) end
    elseif name == 'waiting' then
      for i = 2, #of, 2 do put(into(added, unlinked), now_text, of[i]) end
      wake(wakes .. 'server', 1)
    elseif due < INF then
      arrived[name] = (arrived[name] or 0) + (#members - first) / 2
      touch(name)
    end
  end

  -- Updates `heads` and `first` for a requirement. These only repeat what the sets say, so if one of them has a wrong
  -- type, the script goes on.
  local function refresh(name)
    local member = try('ZRANGE', places .. name, 0, 0)[1]
    local head = member and string.sub(member, 1, 29) .. name
    local old = try('HGET', first_of, name)
    local of_queue = heads .. queue_of(name)
    if type(old) == 'string' and old ~= head then try('ZREM', of_queue, old) end
    if head then try('ZADD', of_queue, 0, head) end
    if head and old ~= head then try('HSET', first_of, name, head) end
    if old and not head then try('HDEL', first_of, name) end
  end

  -- The set `requirements_of` of a submitter has the requirements of tasks that it has opened. Each counts until the
  -- time in its score, which is that of the last of these tasks, and then as long as it has due tasks.
  local accounts, charges = {}, {} -- the new requirements of a call by submitter, and what each place adds
  local idle = {} -- for each account that was full, requirements that leave it with the first write

  -- Notes that tasks of a submitter enter a place, at last that of a requirement. Returns false if its tasks have too
  -- many other requirements.
  local function charge(owner, place, name)
    if not string.find(owner, '^[%w._-]+$') then return true end -- no token has another name
    local key, known = prefix .. 'requirements_of:' .. owner, into(accounts, owner)
    local function is_full()
      return #known + (tonumber(try('ZCARD', key)) or 0) - #(idle[key] or {}) >= MOST_OF_ONE
    end
    if not known[name] and type(try('ZSCORE', key, name)) ~= 'string' then
      if is_full() and not idle[key] then -- once a call, which may refuse a thousand units
        for _, of in ipairs(try('ZRANGEBYSCORE', key, '-inf', now_text)) do
          if not known[of] and try('HEXISTS', first_of, of) == 0 then table.insert(into(idle, key), of) end
        end
        into(idle, key)
      end
      if is_full() then return false end
      table.insert(known, name)
    end
    known[name], into(charges, place)[owner .. ' ' .. name] = true, { key = key, name = name }
    return true
  end

  -- Writes the requirements of submitters whose tasks enter a place. A task that waits for others counts for a day.
  local function keep_accounts(place, entries)
    local last = place == 'waiting' and now + 86400 or now
    for i = 1, charges[place] and #entries or 0, 2 do last = math.max(last, number(entries[i]) or 0) end
    for _, c in pairs(charges[place] or {}) do
      if idle[c.key] then
        bulk('ZREM', c.key, idle[c.key], try)
        idle[c.key] = {} -- some of them may enter again
      end
      try('ZADD', c.key, 'GT', text(last), c.name)
      try('EXPIRE', c.key, 604800)
    end
  end

  -- Changes the sets of all places that tasks enter or leave, and wakes workers for the tasks that enter.
  function finish_places()
    for place, ids in pairs(leaving) do leave(place, ids) end
    for key, members in pairs(removed) do bulk('ZREM', key, members, try) end
    local added = {}
    for place, of in pairs(entering) do
      enter(place, of, added)
      keep_accounts(place, of)
    end
    for key, of in pairs(added) do bulk('ZADD', key, of, key ~= placed and try or nil) end
    for name in pairs(touched) do refresh(name) end
    for name, n in pairs(arrived) do
      number_requirement(name)
      if n > 0 then wake(wakes .. (name == DEFAULT and 'open' or name), n) end
    end
    entering, leaving, removed, touched, arrived = {}, {}, {}, {}, {}
  end

  -- Moves due tasks from `later` to the sets of their requirements, at most the given number. Returns their number. The
  -- audit repairs those whose hash says something else.
  function promote(most, tasks)
    local due = try('ZRANGEBYSCORE', later, '-inf', now_text, 'WITHSCORES', 'LIMIT', 0, most)
    local ids = {}
    for i = 1, #due, 2 do
      local f = try('HMGET', tasks .. due[i], 'state', 'place')
      ids[#ids + 1] = due[i]
      if f[1] == 'open' and f[2] and not split_place(f[2]).held then
        enter_place(f[2], text(number(due[i + 1]) or 0), due[i])
      end
    end
    bulk('ZREM', later, ids, try)
    finish_places()
    return #ids
  end

  -- Returns an error reply if a set that the place needs has a wrong type.
  local checked, admitted = {}, {} -- keys of sets without an error, and of requirements that tasks may have
  function wrong_place(place)
    local p = split_place(place)
    if checked[p.key] then return nil end
    local wrong = not_sorted(p.key) or not_sorted(placed) or p.name == 'waiting' and not_sorted(unlinked)
    checked[p.key] = not wrong
    return wrong
  end

  -- Returns the place that a task enters, and the reason why it cannot, or nil. The argument is the task's owner, a
  -- line feed, and the place. Behind 'waiting ' is the place that the task enters later.
  function no_place(given)
    local owner, place = string.match(given, '^([^\n]*)\n(.*)$')
    local behind = string.match(place, '^waiting (.*)$')
    local p = split_place(behind or place)
    local name = p.name
    if behind then place = 'waiting' end
    local wrong = wrong_place(place)
    if wrong then return place, '!redis: ' .. wrong.err end
    if p.claimed and not charge(owner, place, name) then return place, string.format('$%s %s', owner, name) end
    if behind or admitted[name] or not p.claimed then return place end
    local busy = try('HLEN', first_of)
    admitted[name] = type(busy) ~= 'number' or busy < MOST_REQUIREMENTS or call('HEXISTS', first_of, name) == 1
    return place, not admitted[name] and '$ ' .. name or nil
  end
end
