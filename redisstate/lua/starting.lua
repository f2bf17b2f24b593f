-- starting: common code of claims. It decides which tasks the limits of their keys let start now (see limiting.lua).
--
-- A script calls starting.use first, then starting.may_start for each task with a limit key, and starting.start or
-- starting.wait. At the end, it calls starting.finish.

-- The uses of limits, by limit key. A use has the fields room (the number of tasks that may start), count and per (the
-- rate, if the limit has one), first (the first waiting task, if tasks wait), ids (the chosen tasks), waiting (those
-- that begin to wait), and behind (whether one waits only because the first waiting task comes before it).
local starting = { uses = {} }

-- The function creates the others, so that claims of tasks without a limit key do not.
function starting.use(key_of_due, returned)
  limiting.use(key_of_due)

  local function read_use(key)
    local use = { first = try('ZRANGE', held .. ':limit=' .. key, 0, 0)[1], ids = {}, waiting = {} }
    use.room, use.count, use.per = limiting.room(key)
    return use
  end

  -- Returns whether the limit of a key lets the task with a member start now.
  function starting.may_start(key, member)
    local use = starting.uses[key] or read_use(key)
    starting.uses[key] = use
    if #use.ids >= use.room then return false end
    local is_behind = use.first and member > use.first
    use.behind = use.behind or is_behind
    return not is_behind
  end

  function starting.wait(key, id) table.insert(starting.uses[key].waiting, id) end

  function starting.start(key, id) table.insert(starting.uses[key].ids, id) end

  local function note_starts(key, use)
    local starts, set = {}, limiting.starts .. key
    for _, id in ipairs(use.ids) do
      limiting.count(key, id, true)
      put(starts, now_text, now_text .. ' ' .. id)
    end
    if not use.per or not starts[1] then return end
    bulk('ZADD', set, starts, try)
    try('ZREMRANGEBYRANK', set, 0, -1 - use.count)
    try('EXPIRE', set, math.ceil(use.per) + 60)
    -- If the server has checked the key before these starts, it does not know when the next task may start.
    if use.first then try('ZADD', limiting.held, 'XX', 'LT', text(now + use.per), 'limit=' .. key) end
  end

  -- Counts the tasks that start. The script must have called finish_places.
  function starting.finish()
    for key, use in pairs(starting.uses) do
      note_starts(key, use)
      for _, ids in pairs(use.first and { use.ids, use.waiting } or {}) do
        bulk('ZREM', returned .. 'limit=' .. key, ids, try)
      end
    end
    limiting.finish()
    for key, use in pairs(starting.uses) do
      if use.behind then limiting.check_now(key) end
    end
  end
end
