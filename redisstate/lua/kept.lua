-- kept: common code of claims. It keeps a worker for a task that does not fit in what the worker has free, so that
-- smaller tasks do not keep the task waiting for ever (docs/resources.md, "No task starves").
--
-- The hash `kept` has for a requirement the time since which a worker is kept, the time until which the entry counts
-- unless a claim meets the blocked task again, and the worker. After KEPT_AT_MOST seconds, the entry names no worker,
-- so that none is kept for the requirement for RESTS_FOR seconds.

-- `on` says whether the worker is kept for a task that the claim has met. It then waits for no token, but claims again.
local kept = { on = false, CLAIMS_AFTER = 2 }

-- The arguments are the beginning of the keys, the name of the worker, a function that returns whether the worker may
-- run a task, and ordering.serves.
function kept.use(prefix, worker, may_run, serves)
  local DUE_FOR, KEPT_FOR, KEPT_AT_MOST, RESTS_FOR, LOOKED_AT = 60, 60, 3600, 600, 4
  local key, looked_at, decided = prefix .. 'kept', 0, false
  local over = false -- whether the worker need not be kept any more for its requirement

  local present, past, name, since = {}, {}, nil, now_text -- requirements whose entries count, and others
  local all = try('HGETALL', key)
  for i = 1, #all, 2 do
    local of, from, till, holder = all[i], string.match(all[i + 1], '^(%S+) (%S+) (.*)$')
    local left = (tonumber(till or '') or 0) - now
    present[of] = left > 0 and left <= RESTS_FOR
    if not present[of] then table.insert(past, of) end
    local waits = of == DEFAULT or try('HEXISTS', first_of, of) == 1 -- otherwise, the task has started elsewhere
    if present[of] and holder == worker and waits then name, since = of, from end
  end

  -- Keeps back what the task takes, in the queues other than its own, and in its own queue once the claim has met it.
  function kept.enter(queue)
    if name then fitting.hold((kept.on or queue_of(name) ~= queue) and select(2, serves(name)) or nil) end
  end

  -- Notes that the tasks of a requirement fit.
  function kept.open(of) over = over or of == name end

  -- Notes a blocked task, which is the next one of its requirement. Only the first that the worker may run counts, so
  -- that few workers are kept at the same time.
  function kept.meet(of, member, request)
    if kept.on or decided or name and of ~= name then return end
    local id, _, at = parse_member(member)
    if now - (at or now) < DUE_FOR then return kept.open(of) end -- of its own: the task has started elsewhere
    if not name then
      looked_at = looked_at + 1
      if id == of then id = parse_member(try('ZRANGE', places .. of, 0, 0)[1] or '') end -- it is an entry of `heads`
      if looked_at > LOOKED_AT or not may_run(id) then return end
      decided = true
      if present[of] then return end
    end
    kept.on, name = true, of
    fitting.hold(request)
  end

  -- Returns whether the worker is no longer kept for a task, so that it may claim others.
  function kept.finish()
    bulk('HDEL', key, past, try)
    local rests = kept.on and now - (tonumber(since) or 0) > KEPT_AT_MOST -- a round here may never end
    if kept.on then
      local till = now + (rests and RESTS_FOR or KEPT_FOR)
      try('HSET', key, name, string.format('%s %.6f %s', since, till, rests and '' or worker))
    elseif over then
      try('HDEL', key, name)
    end
    kept.on = kept.on and not rests
    return rests or over
  end
end
