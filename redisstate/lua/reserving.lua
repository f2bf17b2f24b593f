-- reserving: common code of claims. It keeps a worker for a task that does not fit in what the worker has free, so that
-- smaller tasks do not keep the task waiting for ever.
--
-- A task is blocked if it fits in what the worker has, but not in what the worker has free. The first blocked task that
-- a claim meets is noted. If the same task is still the first one FIRST_FOR seconds later, the worker is kept for it:
-- its claims end at the task. So they hand out only tasks that come before it, and the worker has enough free when the
-- rounds that it runs have ended. At most one worker is kept for a task, and for one task at a time.
--
-- The hash `reserved` has a field for each partition with such a task: 'priority score since until worker' are the
-- task's priority and score, the time when a claim first met it, and the worker that is kept for it until a time, or ''
-- for none. The field '@' and the name of a worker has the partition for which the worker is kept.
--
-- A script calls reserving.use first, if the worker offers resources. It calls reserving.meet for each blocked task, in
-- their order, and ends its claim when the field `on` is set. At the end, it calls reserving.finish.

local reserving = {}

-- The arguments are the key of the hash, the name of the worker, and a function that returns whether the worker may run
-- the task with an id.
function reserving.use(key, worker, may_run)
  local FIRST_FOR, KEPT_FOR, RENEWED_AFTER, LOOKED_AT = 60, 60, 20, 4
  local mine = '@' .. worker
  local noted, field, record, looked_at = false, nil, nil, 0
  local kept = redis.pcall('HGET', key, mine) -- the partition for which the worker is kept
  if type(kept) ~= 'string' then kept = nil end

  local function read(partition)
    local text = redis.pcall('HGET', key, partition)
    local task, since, till, by = string.match(type(text) == 'string' and text or '', '^(%S+ %S+) (%S+) (%S+) (.*)$')
    since, till = tonumber(since), tonumber(till)
    if task and since and till and since <= now then return { task = task, since = since, till = till, by = by } end
  end

  local function is_mine(r) return r and r.by == worker and r.till > now end

  -- Returns the queue of the task for which the worker is kept, or nil.
  function reserving.queue() return kept and is_mine(read(kept)) and queue_of(kept) or nil end

  local function set(partition, r)
    field, record = partition, string.format('%s %.6f %.6f %s', r.task, r.since, r.till, r.by)
  end

  local function may_run_first(place)
    looked_at = looked_at + 1
    local id = redis.pcall('ZRANGE', place == DEFAULT and open or places .. place, 0, 0)[1]
    return id and may_run(id)
  end

  -- Notes a blocked task. Returns whether the worker is kept for it.
  function reserving.meet(partition, priority, at)
    local r, task = read(partition), string.format('%.0f %.6f', priority, at)
    if r and r.task ~= task then r = nil end
    if partition == kept and is_mine(r) then
      reserving.on = true
    elseif noted or kept or looked_at >= LOOKED_AT then
      return false
    elseif not may_run_first(join_place(partition, string.format('%.0f', priority))) then
      return false
    else
      noted = true
      reserving.on = r and now - r.since >= FIRST_FOR and r.till <= now
    end
    r = r or { task = task, since = now, till = 0, by = '' }
    if reserving.on and (r.by ~= worker or r.till < now + KEPT_FOR - RENEWED_AFTER) then
      r.till, r.by = now + KEPT_FOR, worker
    end
    set(partition, r)
    return reserving.on
  end

  -- Writes what has changed. Returns whether the worker is no longer kept for a task, so that it may claim others.
  function reserving.finish()
    if field then
      if redis.pcall('HGET', key, field) ~= record then redis.pcall('HSET', key, field, record) end
      if reserving.on and kept ~= field then redis.pcall('HSET', key, mine, field) end
      redis.pcall('EXPIRE', key, 3600)
    end
    if not kept or reserving.on then return false end
    if is_mine(read(kept)) then redis.pcall('HDEL', key, kept) end
    redis.pcall('HDEL', key, mine)
    return true
  end

  -- Returns when the worker must claim again, so that it stays kept, or INF.
  function reserving.next_claim() return reserving.on and now + RENEWED_AFTER or INF end
end
