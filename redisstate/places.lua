-- places: common code for the open tasks that only some workers may claim, or that have a priority.
--
-- Such a task has the property `place`: the name of a part of the open list. The task's id is in two sorted sets: the
-- set `placed`, which has all of these tasks, and the set of its place. A place is one priority in one partition. For
-- each partition, there are two more sorted sets. The set `levels` has the priorities with due tasks. The set `later`
-- has the priorities without due tasks, with the time of their first task. A hash has the names of all partitions.
--
-- A held task, which no worker may claim yet, is in a place that is no part of a partition. No claim reads this place.
-- The tasks that wait because of the limit of their key are in places with the name `limit=$key`, or
-- `priority=$priority;limit=$key`. The set `levels` has the priorities of these tasks, too.
--
-- A script that includes this code calls use_places first. It then calls enter_place and leave_place for each task, and
-- finish_places at the end.

local places     -- prefix of the keys of places
local placed     -- key of the set of all tasks that have a place
local partitions -- key of the hash of all partitions
local levels     -- prefix of keys
local later      -- prefix of keys
local wakes      -- prefix of the keys of wake lists
local waits      -- key of the set of all limit keys with waiting tasks

-- The argument is the key of the list of the other open tasks.
local function use_places(open)
  local prefix = string.sub(open, 1, -1 - #'open')
  places, placed, partitions = open .. ':', open .. ':placed', prefix .. 'partitions'
  levels, later, wakes = prefix .. 'levels:', prefix .. 'later:', prefix .. 'wake:'
  waits = prefix .. 'limits_due'
end

local DEFAULT = 'default' -- the partition of tasks that have only a priority

-- Returns the partition and the priority of a place.
local function split_place(place)
  local priority, partition = string.match(place, '^priority=(%-?%d+);?(.*)$')
  if not priority then return place, '0' end
  return partition == '' and DEFAULT or partition, priority
end

-- Returns the place with a priority in a partition. In the default partition, the tasks with the priority 0 are in the
-- list of the other open tasks. Only those with a limit key are in a place.
local function join_place(partition, priority)
  if priority == '0' then return partition end
  if partition == DEFAULT then return 'priority=' .. priority end
  return 'priority=' .. priority .. ';' .. partition
end

-- Returns the limit key because of which the tasks of a place wait, or nil.
local function limit_of(place)
  local part = split_place(place)
  return string.match(part, '^limit=(.*)$')
end

local function is_held(place) return place == 'waiting' or limit_of(place) ~= nil end

-- A task that is opened becomes due some µs later, so that tasks keep their order. It counts as due.
local SOON = 0.01

-- Puts a priority into the set `levels` or `later`, or removes it from both if its place has no tasks. These sets
-- repeat what the places say. So if one of them has a wrong type, the script goes on.
local function refresh_place(place)
  if place == 'waiting' then return end
  local partition, priority = split_place(place)
  if limit_of(place) then
    if redis.pcall('EXISTS', places .. place) == 1 then
      redis.pcall('ZADD', levels .. partition, priority, priority)
    else
      redis.pcall('ZREM', levels .. partition, priority)
    end
    return
  end
  local first = redis.pcall('ZRANGE', places .. place, 0, 0, 'WITHSCORES')
  local enter, at, leave = nil, priority, levels
  if first[2] and score_of(first[2]) <= now + SOON then
    enter, leave = levels, later
  elseif first[2] then
    enter, at = later, first[2]
  else
    redis.pcall('ZREM', later .. partition, priority)
  end
  if enter then redis.pcall('ZADD', enter .. partition, at, priority) end
  redis.pcall('ZREM', leave .. partition, priority)
end

local entering, leaving, arrivals = {}, {}, {} -- by place; arrivals counts the tasks by partition

local function enter_place(place, score, id)
  local of = entering[place]
  if not of then
    of = {}
    entering[place] = of
  end
  local n = #of
  of[n + 1], of[n + 2] = score, id
end

local function leave_place(place, id)
  local of = leaving[place]
  if not of then
    of = {}
    leaving[place] = of
  end
  of[#of + 1] = id
end

-- Enters a partition into the hash of all partitions. If the partition is new there, the version of the hash changes,
-- so that workers read it again.
local function register(partition)
  if redis.call('HSETNX', partitions, partition, now_text) == 0 then return end
  redis.call('HSET', partitions, 'version', now_text)
end

-- Changes the sets of all places that tasks enter or leave, and wakes workers for the tasks that enter.
local function finish_places()
  for place, of in pairs(leaving) do
    bulk('ZREM', places .. place, of)
    bulk('ZREM', placed, of)
    if not entering[place] then refresh_place(place) end
  end
  for place, of in pairs(entering) do
    bulk('ZADD', places .. place, of)
    bulk('ZADD', placed, of)
    refresh_place(place)
    local key, partition = limit_of(place), not is_held(place) and split_place(place)
    local new_key = key and redis.pcall('ZADD', waits, 'NX', now_text, key) == 1
    if new_key or place == 'waiting' then wake(wakes .. 'server', 1) end
    if partition then arrivals[partition] = (arrivals[partition] or 0) + #of / 2 end
  end
  for partition, n in pairs(arrivals) do
    register(partition)
    wake(wakes .. (partition == DEFAULT and 'open' or partition), n)
  end
end

-- Returns an error reply if a set that the place needs has a wrong type. The last set that scripts write is the hash of
-- all partitions.
local checked = {} -- places without an error
local function wrong_place(place)
  if checked[place] then return nil end
  local wrong = not_sorted(places .. place) or not_sorted(placed)
  if wrong then return wrong end
  if type(redis.pcall('HLEN', partitions)) == 'table' then
    return redis.error_reply('WRONGTYPE ' .. partitions .. ' is not a hash')
  end
  checked[place] = true
end

-- Removes the partitions without tasks from the hash of all partitions. Returns the number of those that stay.
local function remove_empty_partitions()
  local left = 0
  for _, name in ipairs(redis.call('HKEYS', partitions)) do
    if name ~= 'version' then
      if redis.call('EXISTS', levels .. name, later .. name) == 0 then
        redis.call('HDEL', partitions, name)
        redis.call('HSET', partitions, 'version', now_text)
      else
        left = left + 1
      end
    end
  end
  return left
end

-- Returns the reason why no task can be opened in a place, or nil. At most `most` partitions have tasks.
local coming, n_coming = {}, 0 -- the new partitions of this call
local in_use -- the number of partitions with tasks, after the others were removed
local function no_place(place, most)
  local wrong = wrong_place(place)
  if wrong then return '!redis: ' .. wrong.err end
  if is_held(place) then return nil end
  local partition = split_place(place)
  if coming[partition] or redis.call('HEXISTS', partitions, partition) == 1 then return nil end
  local there = in_use or math.max(redis.call('HLEN', partitions) - 1, 0) -- without the field `version`
  if there + n_coming >= most and not in_use then
    in_use = remove_empty_partitions()
    there = in_use
  end
  if there + n_coming >= most then
    return string.format('!%.0f combinations of queue, tags and handler have tasks; no more are allowed', most)
  end
  coming[partition], n_coming = true, n_coming + 1
end
