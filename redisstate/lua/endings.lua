-- endings: common code of the scripts that finish tasks.
--
-- A task has the property `links` if it waits for other tasks, or if other tasks wait for it. When such a task is
-- finished, the script adds its ending to the sorted set `ended`. The server then updates the dependents of the task:
-- the tasks that wait for it (see link.lua). A retry in the meantime must not change the result for them. So the
-- script renames the list of dependents. Tasks that begin to wait after the retry are in a new list.

local endings_prefix -- the namespace and a colon

local function use_endings(due) endings_prefix = string.sub(due, 1, -1 - #'due') end

-- Returns an error reply if the set `ended` has a wrong type.
local function wrong_ended() return not_sorted(endings_prefix .. 'ended') end

local function is_awaited(id) return redis.call('EXISTS', endings_prefix .. 'dependents:' .. id) == 1 end

-- Adds the ending of a task to the set `ended`: the given round of the task was finished in the given state. If the
-- task does not exist, the state is `archived`.
local noted = false
local function note_ending(id, round, state, missing)
  local new = redis.call('ZADD', endings_prefix .. 'ended', now_text, string.format('%s:%s:%s', id, round, state))
  if new == 1 and not missing then redis.pcall('HINCRBY', endings_prefix .. 'task:' .. id, 'endings', 1) end
  if not noted then wake(endings_prefix .. 'wake:server', 1) end
  noted = true
  local list = endings_prefix .. 'dependents:' .. id
  if is_awaited(id) then redis.call('RENAME', list, list .. ':' .. round) end
end
