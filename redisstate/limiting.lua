-- limiting: common code for tasks with a limit key. Tasks with the same key share a limit.
--
-- The sorted set `limited:$key` has the running tasks of a key, each with the time of its claim or of its last check. A
-- script that moves such a task into or out of the state running changes the set in the same step. The set may keep a
-- task that another program has moved: limituse.lua removes this task.
--
-- A task that has to wait is in the place `limit=$key` (see places.lua). The set `limits_due` has each key with waiting
-- tasks, with the time at which the server must check the key. A place that becomes free makes the key due at once.
--
-- A script that includes this code calls use_limits first, then count_limit for each task, and finish_limits at the end.

local limited       -- prefix of the keys of running tasks
local limits_checks -- key of the times of the next checks
local wake_server   -- wake list of the server

local function use_limits(key_of_due)
  local prefix = string.sub(key_of_due, 1, -1 - #'due')
  limited, limits_checks, wake_server = prefix .. 'limited:', prefix .. 'limits_due', prefix .. 'wake:server'
end

local begun, ended = {}, {} -- ids of tasks, by their limit key

local function count_limit(key, id, runs)
  local all = runs and begun or ended
  local ids = all[key] or {}
  all[key] = ids
  ids[#ids + 1] = id
end

-- The other data of the call is already written. So if a key has a wrong type, the script goes on.
local function finish_limits()
  for key, ids in pairs(begun) do
    for _, id in ipairs(ids) do redis.pcall('ZADD', limited .. key, now_text, id) end
  end
  for key, ids in pairs(ended) do
    for i = 1, #ids, 500 do redis.pcall('ZREM', limited .. key, unpack(ids, i, math.min(i + 499, #ids))) end
    if redis.pcall('ZADD', limits_checks, 'XX', 'CH', now_text, key) == 1 then wake(wake_server, 1) end
  end
end
