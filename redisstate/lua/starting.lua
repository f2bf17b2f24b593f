-- starting: common code of claims. It decides which tasks the limits of their keys let start now (see limiting.lua).
--
-- A script calls starting.use first, then starting.may_start for each task with a limit key, and starting.start or
-- starting.wait. At the end, it calls starting.finish.

-- The uses of limits, by limit key. A use has the fields room (the number of tasks that may start, without the rate),
-- count and per (the rate, if the limit has one), starts (the key of the list of the last starts), first (the first
-- waiting task, if tasks wait), ids (the chosen tasks), waiting (those that begin to wait), and behind (whether one of
-- them waits only because the first waiting task comes before it).
local starting = { uses = {} }

-- The arguments are the key of due, and the key of the hash of all limits. The function creates the others, so that
-- claims of tasks without a limit key do not.
function starting.use(key_of_due, limits)
  limiting.use(key_of_due)

  local function read_use(key)
    local use = { room = INF, starts = limiting.starts .. key, ids = {}, waiting = {} }
    local limit = call('HGET', limits, key)
    if not limit or limit == '' then return use end
    use.room, use.count, use.per = limiting.parse(limit)
    local running, last = try('ZCARD', limiting.running .. key), use.per and try('LINDEX', use.starts, -1)
    use.room = type(running) == 'number' and use.room - running or 0
    -- After the clock was set back, the last start lies in the future. The server then corrects the starts.
    if last and (type(last) ~= 'string' or (tonumber(last) or INF) > now) then use.room = 0 end
    use.first = try('ZRANGE', set_of('limit=' .. key), 0, 0)[1]
    return use
  end

  -- Returns whether the limit of a key lets the task with a member start now.
  function starting.may_start(key, member)
    local use = starting.uses[key] or read_use(key)
    starting.uses[key] = use
    local n = #use.ids
    if n >= use.room then return false end
    use.behind = use.behind or use.first and member > use.first
    if use.first and member > use.first then return false end
    if not use.per then return true end
    local earlier = n < use.count and try('LINDEX', use.starts, n - use.count)
    local at = type(earlier) == 'string' and tonumber(earlier)
    return n < use.count and (not earlier or at and at + use.per <= now)
  end

  function starting.wait(key, id) table.insert(starting.uses[key].waiting, id) end

  function starting.start(key, id) table.insert(starting.uses[key].ids, id) end

  local function note_starts(key, use)
    local times = {}
    for i, id in ipairs(use.ids) do
      limiting.count(key, id, true)
      times[i] = now_text
    end
    if not use.per or not times[1] then return end
    try('RPUSH', use.starts, unpack(times))
    try('LTRIM', use.starts, -use.count, -1)
    try('EXPIRE', use.starts, math.ceil(use.per) + 60)
    -- If the server has checked the key before these starts, it does not know when the next task may start.
    if use.first then try('ZADD', limiting.held, 'XX', 'LT', text(now + use.per), 'limit=' .. key) end
  end

  -- Counts the tasks that start. The script must have called finish_places.
  function starting.finish()
    for key, use in pairs(starting.uses) do
      note_starts(key, use)
      for _, ids in pairs(use.first and { use.ids, use.waiting } or {}) do
        bulk('ZREM', limiting.returned .. key, ids, try)
      end
    end
    limiting.finish()
    for key, use in pairs(starting.uses) do
      if use.behind then limiting.check_now(key) end
    end
  end
end
