-- places: common code for the open tasks that only some workers may claim, or that have a priority.
--
-- Such a task has the property `place`: the name of a part of the open list. The task's id is in two sorted sets: the
-- set `placed`, which has all of these tasks, and the set of its place. A place is one priority in one partition. For
-- each partition, there are two more sorted sets. The set `levels` has the priorities with due tasks. The set `later`
-- has the priorities without due tasks, with the time of their first task.
--
-- For each queue, two sorted sets lead claims to the partitions. The set `heads` has a member for each partition with
-- due tasks: its highest priority, the score of its first task, and its name. The members are in the order of these
-- tasks (see head_member). The set `coming` has the partitions with priorities in `later`, and the time of the first of
-- them. The hash `partitions` has all partitions, each with its member of `heads` or ''. Its field `version` exists
-- from the first partition or pause on, and changes with the pauses.
--
-- A held task, which no worker may claim yet, is in a place that is no part of a partition. No claim reads this place.
-- The tasks that wait because of the limit of their key are in places with the name `limit=$key`, or
-- `priority=$priority;limit=$key`. The set `levels` has the priorities of these tasks, too.
--
-- A script calls use_places first, if any of its tasks may have a place. It then calls enter_place and leave_place for
-- each task, and finish_places at the end.

-- The keys of the sets and the hash above, `waits` of the set of all limit keys with waiting tasks, and `unlinked` of
-- the set of the tasks that the server has not linked to all of their dependencies
local placed, partitions, waits, unlinked
local places, heads, coming, levels, later, wakes -- prefixes of keys

local DEFAULT = 'default' -- the partition of tasks that have only a priority

local split_place, join_place, limit_of, is_held, queue_of, is_priority
local head_now = {} -- the new members of `heads`, by partition
local note_head, refresh_place, parse_head, refresh_heads
local enter_place, leave_place, wrong_place, no_place
local function finish_places() end

-- The argument is the key of the list of the other open tasks. A call without open tasks does not create the functions.
local function use_places(open)
  local prefix = string.sub(open, 1, -1 - #'open')
  places, placed, partitions = open .. ':', open .. ':placed', prefix .. 'partitions'
  levels, later, wakes = prefix .. 'levels:', prefix .. 'later:', prefix .. 'wake:'
  heads, coming = prefix .. 'heads:', prefix .. 'coming:'
  waits, unlinked = prefix .. 'limits_due', prefix .. 'unlinked'

  -- Returns the partition and the priority of a place.
  function split_place(place)
    local priority, partition = string.match(place, '^priority=(%-?%d+);?(.*)$')
    if not priority then return place, '0' end
    return partition == '' and DEFAULT or partition, priority
  end

  -- Returns the place with a priority in a partition. In the default partition, the tasks with the priority 0 are in
  -- the list of the other open tasks. Only those with a limit key are in a place.
  function join_place(partition, priority)
    if priority == '0' then return partition end
    if partition == DEFAULT then return 'priority=' .. priority end
    return 'priority=' .. priority .. ';' .. partition
  end

  -- Returns the limit key because of which the tasks of a place wait, or nil.
  function limit_of(place)
    local part = split_place(place)
    return string.match(part, '^limit=(.*)$')
  end

  function is_held(place) return place == 'waiting' or limit_of(place) ~= nil end

  -- The parts with which the name of a partition may begin, if it has no queue.
  local first_parts = { tags = true, group = true, resources = true, min_time = true, handler = true }

  -- Returns the queue of a partition. Returns nil if the text is no name of a partition.
  function queue_of(partition)
    local queue = string.match(partition, '^queue=([^;]+)')
    if queue or partition == DEFAULT then return queue or DEFAULT end
    local part = string.match(partition, '^(%l[%l_]*)=')
    if first_parts[part] then return DEFAULT end
  end

  function is_priority(s)
    local n = string.match(s, '^%-?%d+$') and tonumber(s)
    return n and n >= -2147483648 and n <= 2147483647
  end

  -- The sets that follow repeat what the places say. So if one of them has a wrong type, the script goes on.

  do
    local SOON = 0.01 -- an opened task becomes due some µs later, so that tasks keep their order; it counts as due

    local first_of = {} -- the first task of each place that refresh_place has read, and its score
    -- The partitions whose head may have changed, each with its member of `heads`, or true if it is unknown
    local dirty = {}
    local rescheduled = {} -- partitions whose set `later` has changed

    -- Notes that the head of a partition may have changed. The other arguments are its member of `heads`, or nil, and
    -- whether its set `later` has changed.
    function note_head(partition, member, reschedules)
      dirty[partition] = member or dirty[partition] or true
      rescheduled[partition] = reschedules or rescheduled[partition]
    end

    -- Puts a priority into the set `levels` or `later`, or removes it from both if its place has no tasks. It removes
    -- first: a full Redis refuses no removals, and after the first write of a script, it refuses nothing.
    function refresh_place(place)
      if place == 'waiting' then return end
      local partition, priority = split_place(place)
      local first, queue = redis.pcall('ZRANGE', places .. place, 0, 0, 'WITHSCORES'), queue_of(partition)
      local is_later = queue and first[2] and (score_of(first[2]) or 0) > now + SOON
      local was_later = queue and not is_later and redis.pcall('ZREM', later .. partition, priority) == 1
      set_score(levels .. partition, first[2] and not is_later and priority, priority)
      if is_later then redis.pcall('ZADD', later .. partition, first[2], priority) end
      if not queue then return end -- a limit has such a place, or another program has written it
      first_of[place] = first
      note_head(partition, nil, is_later or was_later)
    end

    -- Returns the member of `heads` for a partition. The order of such members is the order of the tasks.
    local function head_member(partition, priority, score)
      return string.format('%010.0f %017.6f ', 2147483647 - priority, math.max(score, 0)) .. partition
    end

    -- Returns the partition, the priority and the score in a member of `heads`. Foreign members have other values, or
    -- nil.
    function parse_head(member)
      local priority = tonumber(string.sub(member, 1, 10))
      return string.sub(member, 30), priority and 2147483647 - priority, tonumber(string.sub(member, 12, 28))
    end

    -- Returns the present member of `heads` for a partition, or '' if it has no due tasks. Removes foreign priorities.
    -- If there are too many of them for one call, the partition comes first, so that the next claim continues.
    local function head_of(partition)
      local tops
      for _, last in ipairs({ 0, 99 }) do
        tops = redis.pcall('ZREVRANGE', levels .. partition, 0, last)
        local foreign = {}
        for _, priority in ipairs(tops) do
          local place = is_priority(priority) and join_place(partition, priority)
          local first = place and (first_of[place] or redis.pcall('ZRANGE', places .. place, 0, 0, 'WITHSCORES')) or {}
          local score = first[2] and score_of(first[2])
          if score then
            bulk('ZREM', levels .. partition, foreign)
            return head_member(partition, tonumber(priority), score)
          end
          foreign[#foreign + 1] = priority
        end
        bulk('ZREM', levels .. partition, foreign)
        if #tops <= last then return '' end
      end
      return head_member(partition, 2147483647, 0)
    end

    -- The hash `partitions` keeps partitions without tasks, so that idle workers wait for the wake tokens of these
    -- partitions. If there are many partitions, each new one removes some of those without tasks.
    local KEPT_PARTITIONS, SAMPLE = 1000, 4
    local function make_room()
      redis.call('HSETNX', partitions, 'version', now_text)
      if redis.call('HLEN', partitions) <= KEPT_PARTITIONS then return end
      for _, name in ipairs(redis.call('HRANDFIELD', partitions, SAMPLE)) do
        if name ~= 'version' and not dirty[name] and redis.call('EXISTS', levels .. name, later .. name) == 0 then
          redis.call('HDEL', partitions, name)
        end
      end
    end

    -- Updates the sets `heads` and `coming` for all partitions that have changed.
    function refresh_heads()
      local gone, added, fields = {}, {}, {}
      for partition, known in pairs(dirty) do
        local queue, old = queue_of(partition), known ~= true and known or redis.call('HGET', partitions, partition)
        local head = head_of(partition)
        head_now[partition], gone[queue], added[queue] = head, gone[queue] or {}, added[queue] or {}
        if old and old ~= '' and old ~= head then table.insert(gone[queue], old) end
        if head ~= '' then
          table.insert(added[queue], 0)
          table.insert(added[queue], head)
        end
        if old ~= head then fields[#fields + 1], fields[#fields + 2] = partition, head end
        if not old then make_room() end
        if rescheduled[partition] then
          local first = redis.pcall('ZRANGE', later .. partition, 0, 0, 'WITHSCORES')
          set_score(coming .. queue, first[2], partition)
        end
      end
      for queue, members in pairs(gone) do
        if not not_sorted(heads .. queue) then
          bulk('ZREM', heads .. queue, members)
          bulk('ZADD', heads .. queue, added[queue])
        end
      end
      bulk('HSET', partitions, fields)
      dirty, rescheduled = {}, {}
    end
  end

  do
    local entering, leaving, arrivals = {}, {}, {} -- by place; arrivals counts the tasks by partition

    function enter_place(place, score, id) put(into(entering, place), score, id) end

    function leave_place(place, id) table.insert(into(leaving, place), id) end

    -- Enters tasks that begin to wait into the set `unlinked`. Until they leave this set, nobody knows all tasks that
    -- they need (see link.lua and needs.lua).
    local function enter_unlinked(of)
      local new = {}
      for i = 1, #of, 2 do new[i], new[i + 1] = now_text, of[i + 1] end
      bulk('ZADD', unlinked, new)
    end

    -- Changes the sets of all places that tasks enter or leave, and wakes workers for the tasks that enter.
    function finish_places()
      for place, of in pairs(leaving) do
        bulk('ZREM', places .. place, of)
        bulk('ZREM', placed, of)
        if place == 'waiting' then bulk('ZREM', unlinked, of) end
        if not entering[place] then refresh_place(place) end
      end
      for place, of in pairs(entering) do
        bulk('ZADD', places .. place, of)
        bulk('ZADD', placed, of)
        if place == 'waiting' then enter_unlinked(of) end
        refresh_place(place)
        local key, partition = limit_of(place), not is_held(place) and split_place(place)
        local new_key = key and redis.pcall('ZADD', waits, 'NX', now_text, key) == 1
        if new_key or place == 'waiting' then wake(wakes .. 'server', 1) end
        if partition then arrivals[partition] = (arrivals[partition] or 0) + #of / 2 end
      end
      refresh_heads()
      for partition, n in pairs(arrivals) do
        wake(wakes .. (partition == DEFAULT and 'open' or partition), n)
      end
    end
  end

  -- Returns an error reply if a set that the place needs has a wrong type. The last set that scripts write is the hash
  -- of all partitions.
  local checked = {} -- places without an error
  function wrong_place(place)
    if checked[place] then return nil end
    local wrong = not_sorted(places .. place) or not_sorted(placed) or place == 'waiting' and not_sorted(unlinked)
      or not_hash(partitions)
    checked[place] = not wrong
    return wrong
  end

  -- Returns the reason why no task can be opened in a place, or nil.
  function no_place(place)
    local wrong = wrong_place(place)
    return wrong and '!redis: ' .. wrong.err
  end
end
