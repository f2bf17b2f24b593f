-- positions: common code of claims. A claim reads a limited number of tasks. At the head of a queue, there may be many
-- tasks that a worker does not want. A position is the place after these tasks: the next claim continues there. After
-- KEPT_FOR seconds, a claim starts at the head again.
--
-- All workers that avoid the same programs and offer the same share a position. If a worker meets a task that must not
-- run on that worker, the worker gets a position of its own. A position is stored as 'began score id priority read':
-- the time of the call that began at the head of the queue, the last task that a call skipped, and the number of tasks
-- that the calls have read up to this task. In a sweep (see ordering.lua), ' ~' and the entry of a partition follow, or
-- nothing for the list `open`. The position is then in this partition, and the sweep has finished with the partitions
-- before it.
--
-- Another kind of position says how many entries of the set `heads` claims skip because the worker does not serve these
-- partitions. It is stored as 'began entry', for all workers that offer the same.

local positions = { kept = {} } -- kept has keys and values in turn

-- The arguments are the prefix of the keys of positions, and the name of the set of programs to avoid. Without a name,
-- a script must not read or keep positions. This function creates the others, so that most claims do not.
function positions.use(prefix, name)
  positions.prefix, positions.name = prefix, name

  -- Returns the key of the position of a queue. Without a worker, it is the shared position.
  function positions.key(queue, worker)
    return positions.prefix .. positions.name .. (worker and '@' .. worker or '') .. ':' .. queue
  end

  -- Returns the text of a key, or ''.
  local function stored(key)
    local value = redis.pcall('GET', key)
    return type(value) == 'string' and value or ''
  end

  -- The server returns waiting tasks to their places with their old scores (see limitreturn.lua), and so before a
  -- position. So claims then begin at the head again. But first, claims continue at the position for a while, so that
  -- they get past tasks that the worker does not want. This time is longer if many tasks are before the position,
  -- because claims need about a second to read READ_PER_SECOND tasks.
  local READ_PER_SECOND = 50000
  local function overlooks(began, read, queue)
    if now - began <= 1 + read / READ_PER_SECOND then return false end
    return began < (tonumber(stored(positions.prefix .. 'returned:' .. queue)) or 0)
  end

  local KEPT_FOR, SWEEP_KEPT_FOR = 60, 10

  local function is_current(began, seconds) return began and began <= now and now - began <= seconds end

  -- Reads a position in a queue. Returns nil if the claim must begin at the head. A sweep does not see the new tasks of
  -- the partitions before it, so it soon begins again.
  function positions.read(key, queue)
    local began, score, id, priority, read, rest = string.match(stored(key), '^(%S+) (%S+) (%S+) (%-?%d+) (%d+)(.*)$')
    began, read = tonumber(began), tonumber(read)
    local base = string.match(rest or '', '^ ~(.*)$')
    local seconds = base and SWEEP_KEPT_FOR + (read or 0) / READ_PER_SECOND or KEPT_FOR
    if not is_current(began, seconds) or not score_of(score) or overlooks(began, read, queue) then return nil end
    return { began = began, score = score, id = id, priority = priority, read = read, base = base }
  end

  -- Returns the position at the beginning of a partition in a sweep, with the number of tasks that the calls have read.
  function positions.sweep_from(base, read)
    return { began = now, score = '0', id = '0', priority = '2147483647', read = read, base = base }
  end

  -- Returns whether position a comes after position b. Both may be nil, for the head of the queue.
  function positions.is_after(a, b)
    if not a or not b then return a ~= nil end
    if a.base or b.base then return a.base ~= nil and (a.base ~= b.base or a.read > b.read) end
    local p, q = tonumber(a.priority), tonumber(b.priority)
    if p ~= q then return p < q end
    local s, t = score_of(a.score), score_of(b.score)
    if s ~= t then return s > t end
    return a.id > b.id -- Redis, too, orders equal scores by member
  end

  -- Returns the number of entries of a list before a position. The list has the priority of the position.
  function positions.rank_after(key, at)
    local score = redis.call('ZSCORE', key, at.id)
    if score and score_of(score) == score_of(at.score) then return redis.call('ZRANK', key, at.id) + 1 end
    return redis.call('ZCOUNT', key, '-inf', '(' .. at.score)
  end

  function positions.keep(key, began, at)
    local value = string.format('%.6f %s %s %s %.0f', began, at.score, at.id, at.priority, at.read)
    put(positions.kept, key, at.base and value .. ' ~' .. at.base or value)
  end

  -- Returns the last entry of `heads` that claims skip, with its priority and score. All of them are nil if claims skip
  -- none. The field `began` is the time when claims have begun to skip entries.
  function positions.passed_heads(queue)
    local began, member = string.match(stored(positions.prefix .. 'heads:' .. queue), '^(%S+) (.*)$')
    began = tonumber(began)
    if not is_current(began, KEPT_FOR) then return {} end
    local _, priority, score = parse_head(member)
    if not priority or not score then return {} end
    return { began = began, member = member, priority = priority, score = score }
  end

  function positions.keep_passed_heads(queue, before, member)
    local began = string.format('%.6f ', before and before.began or now)
    put(positions.kept, positions.prefix .. 'heads:' .. queue, began .. member)
  end

  function positions.finish()
    local kept = positions.kept
    for i = 1, #kept, 2 do redis.call('SET', kept[i], kept[i + 1], 'EX', 2 * KEPT_FOR) end
  end
end
