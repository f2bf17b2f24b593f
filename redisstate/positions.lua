-- positions: common code of claims. A claim reads a limited number of tasks. At the head of a queue, there may be many
-- tasks that a worker does not want. A position is the place after these tasks: the next claim continues there. After
-- KEPT_FOR seconds, a claim starts at the head again.
--
-- All workers that avoid the same programs and claim from the same partitions share a position. If a worker meets a
-- task that must not run on that worker, the worker gets a position of its own.
--
-- A position is stored as 'began score id priority read'. The first part is the time of the call that began at the head
-- of the queue. The next parts are the score, the id and the priority of the last task that a call skipped. The last
-- part is the number of tasks that the calls have read up to this task.

local positions = { kept = {} } -- kept has keys and values in turn

-- The arguments are the prefix of the keys of positions, and the name of the set of programs to avoid. Without a name,
-- there are no positions.
function positions.use(prefix, name) positions.prefix, positions.name = prefix, name end

-- Returns the key of the position of a queue. Without a worker, it is the shared position.
function positions.key(queue, worker)
  return positions.prefix .. positions.name .. (worker and '@' .. worker or '') .. ':' .. queue
end

-- Returns the last time at which the server has returned a task to one of the partitions.
local function returned_at(names)
  local keys, last = {}, 0
  for i, name in ipairs(names) do keys[i] = positions.prefix .. 'returned:' .. name end
  for i = 1, #keys, 500 do
    for _, at in ipairs(redis.pcall('MGET', unpack(keys, i, math.min(i + 499, #keys)))) do
      last = math.max(last, at and tonumber(at) or 0)
    end
  end
  return last
end

-- The server returns waiting tasks to their places with their old scores (see limitreturn.lua), and so before a
-- position. So claims then begin at the head again. But first, claims continue at the position for a while, so that
-- they get past tasks that the worker does not want. This time is longer if many tasks are before the position, because
-- claims need about a second to read READ_PER_SECOND tasks.
local READ_PER_SECOND = 50000
local function overlooks(began, read, names)
  return now - began > 1 + read / READ_PER_SECOND and began < returned_at(names)
end

local KEPT_FOR = 60

-- Reads a position in a set of partitions. Returns nil if the claim must begin at the head.
function positions.read(key, names)
  local at = positions.name ~= '' and redis.pcall('GET', key)
  if type(at) ~= 'string' then return nil end
  local began, score, id, priority, read = string.match(at, '^(%S+) (%S+) (%S+) (%-?%d+) (%d+)$')
  began, read = tonumber(began), tonumber(read)
  if not began or not score_of(score) or began > now or now - began > KEPT_FOR then return nil end
  if overlooks(began, read, names) then return nil end
  return { began = began, score = score, id = id, priority = priority, read = read }
end

-- Returns whether position a comes after position b. Both may be nil, for the head of the queue.
function positions.is_after(a, b)
  if not a or not b then return a ~= nil end
  local p, q = tonumber(a.priority), tonumber(b.priority)
  if p ~= q then return p < q end
  local s, t = score_of(a.score), score_of(b.score)
  if s ~= t then return s > t end
  return a.id > b.id -- Redis, too, orders equal scores by member
end

-- Returns the number of entries of a list before a position. The list has the priority of the position.
function positions.rank_after(key, at)
  local score = redis.call('ZSCORE', key, at.id)
  if score and score_of(score) == score_of(at.score) then return redis.call('ZRANK', key, at.id) + 1 end
  return redis.call('ZCOUNT', key, '-inf', '(' .. at.score)
end

function positions.keep(key, began, at)
  local n = #positions.kept
  positions.kept[n + 1] = key
  positions.kept[n + 2] = string.format('%.6f %s %s %s %.0f', began, at.score, at.id, at.priority, at.read)
end

function positions.finish()
  local kept = positions.kept
  for i = 1, #kept, 2 do redis.call('SET', kept[i], kept[i + 1], 'EX', 2 * KEPT_FOR) end
end
