-- indexes: common code of the scripts that change the indexes of groups and queues, or the logs of tasks.

-- Returns the score of a task in its indexes. The scores order tasks by state, then by id.
local function place(code, id) return string.format('%.0f', code * IDS_END + tonumber(id)) end

-- Returns the key of the index of a task's group. Returns nil if the task has no group, or if the key exists but is not
-- a sorted set. With the prefix of the indexes of queues, the function does the same for a queue.
local function group_index(prefix, group, id)
  if not group or group == '' or tonumber(id) >= IDS_END then return nil end
  local key = prefix .. group
  return not not_sorted(key) and key or nil
end

-- One text names the indexes that have a task: its group, and behind a line feed its queue, if it has one. Returns
-- both.
local function group_and_queue(names)
  local cut = string.find(names, '\n', 1, true)
  if not cut then return names, nil end
  return string.sub(names, 1, cut - 1), string.sub(names, cut + 1)
end

-- Returns the names of a task's indexes. The queue `default` has no index.
local function names_of(group, queue)
  if not queue or queue == '' or queue == 'default' then return group or '' end
  return (group or '') .. '\n' .. queue
end

-- Returns another key or prefix of the namespace than the prefix of the indexes of groups.
local function beside(groups, name) return string.sub(groups, 1, -7) .. name end

-- Returns the keys of the indexes of a task's group and queue, or nil for each that it lacks.
local function indexes_of(groups, names, id)
  local group, queue = group_and_queue(names)
  return group_index(groups, group, id), queue and group_index(beside(groups, 'queue:'), queue, id)
end

-- Adds a task to its indexes. The function finish_indexes writes them.
local in_indexes, lists_of = {}, {} -- new entries, by the key of the index, and by the names of a task's indexes
local function enter_indexes(groups, names, code, id)
  local lists = lists_of[names]
  if not lists then
    local of_group, of_queue = indexes_of(groups, names, '0')
    lists = { (of_group or of_queue) and into(in_indexes, of_group or of_queue) }
    if of_group and of_queue then lists[2] = into(in_indexes, of_queue) end
    lists_of[names] = lists
  end
  local n = tonumber(id)
  for i = 1, n < IDS_END and #lists or 0 do
    local of = lists[i]
    of[#of + 1], of[#of + 2] = code * IDS_END + n, id
  end
end

local function finish_indexes()
  for key, of in pairs(in_indexes) do bulk('ZADD', key, of) end
end

-- Wakes the server if tasks wait for a group whose last unfinished task the script has just finished. The codes of the
-- states of finished tasks begin at FINISHED.
local FINISHED = 4
local function wake_for_groups(groups)
  local awaited = beside(groups, 'awaited_groups')
  if not next(in_indexes) or call('EXISTS', awaited) == 0 then return end
  for key in pairs(in_indexes) do
    local is_group, name = string.sub(key, 1, #groups) == groups, string.sub(key, #groups + 1)
    if is_group and type(try('ZSCORE', awaited, name)) == 'string'
      and call('ZCOUNT', key, '-inf', '(' .. place(FINISHED, 0)) == 0 then
      wake(beside(groups, 'wake:server'), 1)
    end
  end
end

-- Returns the log with one more line. If it then has more than 100 lines, only the first 10 and the last 90 stay.
local function logged(log, line)
  if not log or log == '' then return line end
  if #log > 2000 then
    local ends, pos = {}, 0
    repeat
      pos = string.find(log, '\n', pos + 1, true)
      ends[#ends + 1] = pos
    until not pos
    if #ends >= 99 then
      log = string.sub(log, 1, ends[10]) .. string.sub(log, ends[#ends - 88] + 1)
    end
  end
  return log .. '\n' .. line
end

-- Adds the groups and queues of new tasks to the sets of the names of all groups and queues. The first argument is the
-- prefix of the indexes of groups. The sets only repeat what the indexes say, so if one has a wrong type, the script
-- goes on.
local function keep_names(groups, indexed)
  local of_groups, of_queues = {}, {}
  for _, names in ipairs(indexed) do
    local group, queue = group_and_queue(names)
    if group ~= '' then of_groups[#of_groups + 1], of_groups[#of_groups + 2] = 0, group end
    if queue then of_queues[#of_queues + 1], of_queues[#of_queues + 2] = 0, queue end
  end
  bulk('ZADD', beside(groups, 'group_names'), of_groups, try)
  bulk('ZADD', beside(groups, 'queue_names'), of_queues, try)
end
