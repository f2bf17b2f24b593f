-- newtask: the hash of a new task, for the scripts that open tasks.

-- Returns the arguments of HSET: places for the key, the log, the time and the id; the properties that most new tasks
-- have in common, which Go sends only if they differ (redisstate/encode.go); and the given properties.
local function new_task(...)
  return {
    '', 'log', '', '0:open', '', 'id', '', 'state', 'open', 'round', '0', 'fails', '0', 'timeouts', '0',
    'start_after', '0', 'end_before', 'inf', 'timeout', 'inf', 'max_fails', '0', 'max_timeouts', '0', ...,
  }
end
