-- limiting: common code for tasks with a limit key. Tasks with the same key share a limit.
--
-- The sorted set `limited:$key` has the running tasks of a key, each with the time of its claim or of its last check. A
-- script that moves such a task into or out of the state running changes the set in the same step. If another
-- program moves a task, the task may stay in the set. limituse.lua then removes it. The sorted set `limits_used` has
-- the keys of all these sets, so that the server finds them.
--
-- A task that has to wait is held for the reason `limit=$key` (see places.lua). When a running task ends, the server
-- checks the key at once.
--
-- A script calls limiting.use first, then limiting.count for each task, and limiting.finish at the end. The function
-- limiting.use creates the others, so that calls without limit keys do not. The code is in one table, because a script
-- may have only about 180 locals.

local limiting = {}

function limiting.use(key_of_due)
  limiting.begun, limiting.ended = {}, {} -- ids of tasks, by their limit key
  local prefix = string.sub(key_of_due, 1, -1 - #'due')
  limiting.running = prefix .. 'limited:'
  limiting.returned, limiting.starts = prefix .. 'returned:', prefix .. 'starts:'
  limiting.held, limiting.wake = prefix .. 'held', prefix .. 'wake:server'
  limiting.used = prefix .. 'limits_used'

  -- Reads a limit, such as 'at_most=4 rate=10/1.000000'. Returns the largest number of running tasks, and the number
  -- and the time of the rate, or nil. If the text is no limit, nothing may run. The server gets these numbers from
  -- limituse.lua, and does not read the text. So claims and the server always agree.
  function limiting.parse(limit)
    local at_most, count, per = INF, nil, nil
    for part in string.gmatch(limit, '%S+') do
      local most = string.match(part, '^at_most=(%d+)$')
      local n, span = string.match(part, '^rate=(%d+)/([%d.]+)$')
      if most then
        at_most = tonumber(most)
      elseif tonumber(span) and tonumber(n) > 0 then
        count, per = tonumber(n), tonumber(span)
      elseif string.match(part, '^at_most=') or string.match(part, '^rate=') then
        return 0
      end
    end
    return (per or at_most < INF) and at_most or 0, count, per
  end

  function limiting.count(key, id, runs)
    table.insert(into(runs and limiting.begun or limiting.ended, key), id)
  end

  -- Makes a key due if it has waiting tasks, and wakes the server.
  function limiting.check_now(key)
    if redis.pcall('ZADD', limiting.held, 'XX', 'CH', now_text, 'limit=' .. key) == 1 then wake(limiting.wake, 1) end
  end

  -- The script has already written the other data of the call. So if a key has a wrong type, the script goes on.
  function limiting.finish()
    for key, ids in pairs(limiting.begun) do
      local entries = {}
      for i, id in ipairs(ids) do entries[2 * i - 1], entries[2 * i] = now_text, id end
      bulk('ZADD', limiting.running .. key, entries, redis.pcall)
      redis.pcall('ZADD', limiting.used, 'NX', now_text, key)
    end
    for key, ids in pairs(limiting.ended) do
      bulk('ZREM', limiting.running .. key, ids, redis.pcall)
      if redis.pcall('EXISTS', limiting.running .. key) == 0 then redis.pcall('ZREM', limiting.used, key) end
      limiting.check_now(key)
    end
  end
end
