-- newtask: writes the hash of a new task, for the scripts that open tasks.

-- Writes the properties that most new tasks have in common, which Go sends only if they differ (redisstate/encode.go),
-- and then the given ones.
local function write_task(key, at, who, id, ...)
  call(
    'HSET', key, 'log', at .. ' ' .. who .. ': open', '0:open', at, 'id', id, 'state', 'open', 'round', '0',
    'fails', '0', 'timeouts', '0', 'start_after', '0', 'end_before', 'inf', 'timeout', 'inf', 'max_fails', '0',
    'max_timeouts', '0', ...
  )
end
