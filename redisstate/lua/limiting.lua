-- limiting: common code for tasks with a limit key (docs/lifecycle.md, "Limits per key").
--
-- A script that moves such a task into or out of the state running changes the set `limited:$key` in the same step. If
-- another program moves the task, limituse.lua removes it from the set later.
--
-- A script calls limiting.use first, then limiting.count for each task, and limiting.finish at the end. The function
-- limiting.use creates the others, so that calls without limit keys do not. The code is in one table, because a script
-- may have only about 180 locals.

local limiting = {}

function limiting.use(key_of_due)
  local prefix = string.sub(key_of_due, 1, -1 - #'due')
  local begun, ended = {}, {} -- ids of tasks, by their limit key
  limiting.running, limiting.used = prefix .. 'limited:', prefix .. 'limits_used'
  limiting.returned, limiting.starts, limiting.held = prefix .. 'returned:', prefix .. 'starts:', prefix .. 'held'

  -- Reads a limit, such as 'at_most=4 rate=10/1.000000'. Returns the largest number of running tasks, and the number
  -- and the time of the rate, or nil. If the text is no limit, nothing may run. The server gets these numbers from
  -- limituse.lua, and does not read the text. So claims and the server always agree.
  function limiting.parse(limit)
    local most, rest = string.match(limit, '^at_most=(%d+)%s*(.*)$')
    if not most then rest = limit end
    local count, per = string.match(rest, '^rate=(%d+)/([%d.]+)$')
    count, per = tonumber(count or ''), tonumber(per or '')
    if rest ~= '' and not (per and count > 0) then return 0 end
    return tonumber(most or '') or INF, count, per
  end

  function limiting.count(key, id, runs) table.insert(into(runs and begun or ended, key), id) end

  -- Makes a key due if it has waiting tasks, and wakes the server.
  function limiting.check_now(key)
    if try('ZADD', limiting.held, 'XX', 'CH', now_text, 'limit=' .. key) == 1 then wake(prefix .. 'wake:server', 1) end
  end

  -- The script has already written the other data of the call. So if a key has a wrong type, the script goes on.
  function limiting.finish()
    for key, ids in pairs(begun) do
      local entries = {}
      for i, id in ipairs(ids) do entries[2 * i - 1], entries[2 * i] = now_text, id end
      bulk('ZADD', limiting.running .. key, entries, try)
      try('ZADD', limiting.used, 'NX', now_text, key)
    end
    for key, ids in pairs(ended) do
      bulk('ZREM', limiting.running .. key, ids, try)
      if try('EXISTS', limiting.running .. key) == 0 then try('ZREM', limiting.used, key) end
      limiting.check_now(key)
    end
  end
end
