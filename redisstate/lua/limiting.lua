-- limiting: common code for tasks with a limit key (docs/lifecycle.md, "Limits per key").
--
-- The set `limited:KEY` has the tasks of a key that run, and `starts:KEY` the last starts, if the limit has a rate. A
-- script that moves such a task into or out of the state running changes `limited:KEY` in the same step. If another
-- program moves the task, unhold.lua removes it from the set later.
--
-- A script calls limiting.use first, then limiting.count for each task, and limiting.finish at the end. The function
-- limiting.use creates the others, so that calls without limit keys do not. The code is in one table, because a script
-- may have only about 180 locals.

local limiting = {}

function limiting.use(key_of_due)
  local prefix = string.sub(key_of_due, 1, -1 - #'due')
  local begun, ended = {}, {} -- ids of tasks, by their limit key
  limiting.running, limiting.starts = prefix .. 'limited:', prefix .. 'starts:'

  -- Returns how many tasks of a key may start now. If the limit has a rate, also returns the number and the time of the
  -- rate; and if the rate is what keeps more tasks from starting, the time from which one more may start. A limit is a
  -- text such as 'at_most=4 rate=10/1.000000'. With another text, nothing may run.
  function limiting.room(key)
    local limit = try('HGET', prefix .. 'limits', key)
    if not limit or limit == '' then return INF end
    if type(limit) ~= 'string' then return 0 end
    local most, rest = string.match(limit, '^at_most=(%d+)%s*(.*)$')
    local count, per = string.match(rest or limit, '^rate=(%d+)/([%d.]+)$')
    count, per = tonumber(count or ''), tonumber(per or '')
    if rest ~= '' and not (per and count > 0) then return 0 end
    local running, set, ahead = try('ZCARD', limiting.running .. key), limiting.starts .. key, {}
    local room = type(running) == 'number' and (tonumber(most or '') or INF) - running or 0
    if not per then return room end
    -- After the clock was set back, the last starts lie in the future. They then count from now on.
    for _, start in ipairs(try('ZRANGEBYSCORE', set, '(' .. now_text, '+inf')) do put(ahead, now_text, start) end
    bulk('ZADD', set, ahead, try)
    local since = '(' .. text(now - per)
    local used, first = try('ZCOUNT', set, since, '+inf'), nil
    local free = type(used) == 'number' and count - used or 0
    if free >= room then return room, count, per end
    first = try('ZRANGEBYSCORE', set, since, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
    return free, count, per, first and score_of(first) + per
  end

  function limiting.count(key, id, runs) table.insert(into(runs and begun or ended, key), id) end

  -- The script has already written the other data of the call. So if a key has a wrong type, the script goes on.
  function limiting.finish()
    for key, ids in pairs(begun) do
      local entries = {}
      for i, id in ipairs(ids) do entries[2 * i - 1], entries[2 * i] = now_text, id end
      bulk('ZADD', limiting.running .. key, entries, try)
    end
    for key, ids in pairs(ended) do
      bulk('ZREM', limiting.running .. key, ids, try)
      check_held(prefix, 'limit=' .. key)
    end
  end
end
