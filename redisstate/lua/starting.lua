-- starting: common code of claims. It decides which tasks the limits of their keys let start now, and makes the others
-- wait (see limiting.lua).
--
-- A task with a limit key is claimed only if the limit of the key has room. Otherwise, the script moves the task to the
-- place of the tasks that wait because of this limit, with the same score. It also does so if another waiting task of
-- the key is older, or has a higher priority. So claims meet each waiting task once.
--
-- A script calls starting.use first, then starting.may_start for each task with a limit key, and starting.start or
-- starting.wait. Before it changes the lists, it calls starting.leave. At the end, it calls starting.finish.

local starting = {
  -- The uses of limits, by limit key. A use has the fields room (the number of tasks that may start, without the rate),
  -- count and per (the rate, if the limit has one), starts (the key of the list of the last starts), has_waiting
  -- (whether tasks wait), priority and score (those of the first waiting task), ids (the chosen tasks), and behind
  -- (whether a task waits because of the order of the tasks, although there is room).
  uses = {},
  waiting = {},
}

-- The arguments are the key of due, and the key of the hash of all limits. The function creates the others, so that
-- claims of tasks without a limit key do not.
function starting.use(key_of_due, limits)
  limiting.use(key_of_due)

  -- Reads the first waiting task of a key.
  local function read_first(use, key)
    local part = 'limit=' .. key
    local priority = redis.pcall('ZREVRANGE', levels .. part, 0, 0)[1]
    local first = priority and redis.pcall('ZRANGE', places .. join_place(part, priority), 0, 0, 'WITHSCORES')
    if first and first[2] and tonumber(priority) then
      use.priority, use.score = tonumber(priority), score_of(first[2])
    end
  end

  local function read_use(key)
    local use = { room = INF, starts = limiting.starts .. key, ids = {} }
    local limit = redis.call('HGET', limits, key)
    if not limit or limit == '' then return use end
    local at_most
    at_most, use.count, use.per = limiting.parse(limit)
    if at_most < INF then
      local n = redis.pcall('ZCARD', limiting.running .. key)
      use.room = type(n) == 'number' and at_most - n or 0
    end
    -- After the clock was set back, the last start lies in the future. The server then corrects the starts.
    local last = use.per and redis.pcall('LINDEX', use.starts, -1)
    if last and (type(last) ~= 'string' or (tonumber(last) or INF) > now) then use.room = 0 end
    use.has_waiting = redis.call('ZSCORE', limiting.checks, key)
    if use.has_waiting then read_first(use, key) end
    return use
  end

  -- Returns whether the limit of a key lets a task start now.
  function starting.may_start(key, priority, score)
    local use = starting.uses[key] or read_use(key)
    starting.uses[key] = use
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

  function starting.start(key, id) table.insert(starting.uses[key].ids, id) end

  -- Makes a task wait. The list is the one that has the task (see ordering.lua).
  function starting.wait(key, list, id, score)
    local at = join_place('limit=' .. key, list.priority)
    starting.wrong = starting.wrong or wrong_place(at)
    table.insert(starting.waiting, { key = key, list = list, id = id, score = score, place = at })
  end

  -- Takes the waiting tasks from their lists. The argument is the prefix of task keys.
  function starting.leave(tasks)
    for _, w in ipairs(starting.waiting) do
      table.insert(w.list.removed, w.id)
      redis.call('HSET', tasks .. w.id, 'place', w.place)
      if starting.uses[w.key].has_waiting then redis.pcall('ZREM', limiting.returned .. w.key, w.id) end
      enter_place(w.place, w.score, w.id)
    end
  end

  local function note_starts(key, use)
    local times = {}
    for i, id in ipairs(use.ids) do
      limiting.count(key, id, true)
      times[i] = now_text
    end
    if use.has_waiting then redis.pcall('ZREM', limiting.returned .. key, unpack(use.ids)) end
    if not use.per then return end
    redis.pcall('RPUSH', use.starts, unpack(times))
    redis.pcall('LTRIM', use.starts, -use.count, -1)
    redis.pcall('EXPIRE', use.starts, math.ceil(use.per) + 60)
    -- If the server has checked the key before these starts, it does not know when the next task may start.
    if use.has_waiting then redis.pcall('ZADD', limiting.checks, 'XX', 'LT', text(now + use.per), key) end
  end

  -- Counts the tasks that start. The script must have called finish_places.
  function starting.finish()
    for key, use in pairs(starting.uses) do
      if #use.ids > 0 then note_starts(key, use) end
    end
    limiting.finish()
    for key, use in pairs(starting.uses) do
      if use.behind then limiting.check_now(key) end
    end
  end
end
