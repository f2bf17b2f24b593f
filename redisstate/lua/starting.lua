-- starting: common code of claims. It decides which tasks the limits of their keys let start now (see limiting.lua).
--
-- A script calls starting.use first, then starting.starts for each task with a limit key, and starting.finish at last.
local starting = {}

-- The function creates the others, so that claims of tasks without a limit key do not.
function starting.use(key_of_due, returned)
  limiting.use(key_of_due)

  -- The uses of limits, by limit key. A use has the fields room (the number of tasks that may start), count and per
  -- (the rate, if the limit has one), first (the first waiting task, if tasks wait), ids (the tasks that start), and
  -- waiting (those that begin to wait).
  local uses = {}
  local function read_use(key)
    local use = { first = try('ZRANGE', held .. ':limit=' .. key, 0, 0)[1], ids = {}, waiting = {} }
    use.room, use.count, use.per = limiting.room(key)
    uses[key] = use
    return use
  end

  -- Returns whether the limit of its key lets a task start now. The task then starts; otherwise, it must wait.
  function starting.starts(key, member, id)
    local use = uses[key] or read_use(key)
    local may_start = #use.ids < use.room and not (use.first and member > use.first)
    table.insert(may_start and use.ids or use.waiting, id)
    return may_start
  end

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
    if use.first then try('ZADD', limiting.prefix .. 'held', 'XX', 'LT', text(now + use.per), 'limit=' .. key) end
  end

  -- Counts the tasks that start. The script must have called finish_places.
  function starting.finish()
    for key, use in pairs(uses) do
      note_starts(key, use)
      for _, ids in pairs(use.first and { use.ids, use.waiting } or {}) do
        bulk('ZREM', returned .. 'limit=' .. key, ids, try)
      end
      -- With room left, a task waits only because waiting ones come before it.
      if use.waiting[1] and #use.ids < use.room then check_held(limiting.prefix, 'limit=' .. key) end
    end
    limiting.finish()
  end
end
