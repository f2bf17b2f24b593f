-- reserving: common code of claims. It keeps a worker for a task that does not fit in what the worker has free, so that
-- smaller tasks do not keep the task waiting for ever.
--
-- A task is blocked if it fits in what the worker has, but not in what the worker has free. The first blocked task that
-- a claim meets is noted, as the first task of its partition. FIRST_FOR seconds later, if the partition is still
-- blocked and none of its tasks has started meanwhile, the next worker whose claim meets it is kept for it: behind the
-- task, and in other queues, its claims hand out only what the task does not take. So the worker has enough free when
-- the rounds that it runs have ended. At most one worker is kept for a partition, and for one partition at a time.
--
-- The hash `reserved` has a field for each partition with such a task: 'priority score since until worker' are the
-- task's priority and score, the time when a claim first met it, and the worker that is kept for it until a time, or ''
-- for none. The field '@' and the name of a worker has the partition for which the worker is kept. If there are many
-- fields, each new one removes some whose partition has no tasks.
--
-- A script calls reserving.use first, if the worker offers resources. It calls reserving.meet for each blocked task, in
-- their order, and reserving.read_to for each other task, and at the end of a queue. The field `on` says whether the
-- worker is kept for the task that the claim has met. At the end, the script calls reserving.finish.

local reserving = {}

-- The arguments are the key of the hash, the name of the worker, and a function that returns whether the worker may run
-- the task with an id.
function reserving.use(key, worker, may_run)
  local FIRST_FOR, KEPT_FOR, RENEWED_AFTER, CLAIMS_AFTER, LOOKED_AT = 60, 60, 20, 2, 4
  local MOST_FIELDS, SAMPLE = 1000, 4
  local mine = '@' .. worker
  local noted, passed, field, record, looked_at = false, false, nil, nil, 0
  local kept = redis.pcall('HGET', key, mine) -- the partition for which the worker is kept
  if type(kept) ~= 'string' then kept = nil end

  -- Times in the future are those of a clock that was set back since, or foreign.
  local function read(partition)
    local text = redis.pcall('HGET', key, partition)
    local priority, score, since, till, by =
      string.match(type(text) == 'string' and text or '', '^(%S+) (%S+) (%S+) (%S+) (.*)$')
    priority, score, since, till = tonumber(priority), tonumber(score), tonumber(since), tonumber(till)
    if priority and score and since and till and since <= now and till <= now + KEPT_FOR then
      return { priority = priority, score = score, since = since, till = till, by = by }
    end
  end

  local function is_mine(r) return r and r.by == worker and r.till > now end

  -- The queue of the task for which the worker is kept, or nil
  local of_mine = kept and read(kept)
  reserving.queue = kept and is_mine(of_mine) and queue_of(kept) or nil

  -- Keeps back what that task takes, in the queues other than its own, and in its own queue once the claim has met it.
  function reserving.enter(queue)
    if not reserving.queue then return end
    local _, request = fitting.request_of(string.match(kept, '^(.-)handler=') or kept)
    fitting.hold((queue ~= reserving.queue or reserving.on) and request or nil)
  end

  -- Notes that the claim has read a queue up to a task. If that comes after the task for which the worker is kept, and
  -- the claim has not met this one, it has started or ended.
  function reserving.read_to(queue, priority, score)
    if queue ~= reserving.queue then return end
    local same = priority == of_mine.priority
    if priority < of_mine.priority or same and score > of_mine.score + 0.000002 then passed = true end
  end

  local function may_run_first(place)
    looked_at = looked_at + 1
    local id = redis.pcall('ZRANGE', place == DEFAULT and open or places .. place, 0, 0)[1]
    return id and may_run(id)
  end

  -- Returns the record of a partition, with its first task. If this task comes after the noted one, the noted one has
  -- started or ended, and the time begins anew.
  local function record_of(partition, priority, score)
    local r = read(partition)
    if not r or priority < r.priority or priority == r.priority and score > r.score + 0.000002 then
      r = { since = now, till = 0, by = '' }
    end
    r.priority, r.score = priority, score
    return r
  end

  -- Notes a blocked task. If the worker is kept for it, the claim keeps back what its request takes.
  function reserving.meet(partition, priority, score, request)
    if noted or kept and partition ~= kept then return end
    local r = record_of(partition, priority, score)
    if kept and not is_mine(r) then return end
    if not kept then
      if looked_at >= LOOKED_AT then return end
      if not may_run_first(join_place(partition, string.format('%.0f', priority))) then return end
    end
    noted, field = true, partition
    reserving.on = kept ~= nil or now - r.since >= FIRST_FOR and r.till <= now
    if reserving.on and (r.by ~= worker or r.till < now + KEPT_FOR - RENEWED_AFTER) then
      r.till, r.by = now + KEPT_FOR, worker
    end
    record = string.format('%.0f %.6f %.6f %.6f %s', r.priority, r.score, r.since, r.till, r.by)
    if reserving.on then fitting.hold(request) end
  end

  -- Returns whether a field says nothing any more.
  local function is_stale(name)
    local of = string.match(name, '^@(.*)$')
    if name == DEFAULT then return false end
    if not of then return redis.call('EXISTS', levels .. name, later .. name) == 0 end
    local partition = redis.call('HGET', key, name)
    local r = partition and read(partition)
    return not r or r.by ~= of or r.till <= now
  end

  local function write(name, value)
    if redis.pcall('HGET', key, name) == value then return end
    if redis.pcall('HSET', key, name, value) ~= 1 or redis.call('HLEN', key) <= MOST_FIELDS then return end
    for _, other in ipairs(redis.call('HRANDFIELD', key, SAMPLE)) do
      if other ~= field and other ~= mine and is_stale(other) then redis.call('HDEL', key, other) end
    end
  end

  -- Writes what has changed. Returns whether the worker is no longer kept for a task, so that it may claim others.
  function reserving.finish()
    if field then
      write(field, record)
      if reserving.on and kept ~= field then write(mine, field) end
      redis.pcall('EXPIRE', key, 3600)
    end
    if not kept or reserving.on or reserving.queue and not passed then return false end
    if is_mine(read(kept)) then redis.pcall('HDEL', key, kept) end
    redis.pcall('HDEL', key, mine)
    return true
  end

  -- Returns when the worker must claim again, or INF. A kept worker waits for no token.
  function reserving.next_claim() return reserving.on and now + CLAIMS_AFTER or INF end
end
