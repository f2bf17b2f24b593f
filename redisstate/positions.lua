-- positions: common code of claims. A claim reads a limited number of tasks. At the head of a queue, there may be many
-- tasks that a worker does not want. A position is the place after these tasks: the next claim continues there. After
-- KEPT_FOR seconds, a claim starts at the head again.
--
-- All workers that avoid the same programs and claim from the same partitions share a position. If a worker meets a
-- task that must not run on that worker, the worker gets a position of its own.
--
-- A position is stored as 'began score id' or 'began score id priority'. The first part is the time of the call that
-- began at the head of the queue. The last parts are the score, the id and the priority of the last task that a call
-- skipped. Without a priority, it is 0.

local positions = { kept = {} } -- kept has keys and values in turn

-- The arguments are the prefix of the keys of positions, and the name of the set of programs to avoid. Without a name,
-- there are no positions.
function positions.use(prefix, name) positions.prefix, positions.name = prefix, name end

-- Returns the key of the position of a queue. Without a worker, it is the shared position.
function positions.key(queue, worker)
  return positions.prefix .. positions.name .. (worker and '@' .. worker or '') .. ':' .. queue
end

-- The server returns waiting tasks to their places with their old scores (see limitreturn.lua), and so before a
-- position. So claims then begin at the head again. But for a second, claims continue at a position, so that they get
-- past tasks that the worker does not want.
local function overlooks(began)
  if positions.returned_at == nil then
    local at = redis.pcall('GET', positions.prefix .. 'returned')
    positions.returned_at = type(at) == 'string' and tonumber(at) or 0
  end
  return began < positions.returned_at and now - began > 1
end

local KEPT_FOR = 60

-- Reads a position. Returns nil if the claim must begin at the head.
function positions.read(key)
  local at = positions.name ~= '' and redis.pcall('GET', key)
  if type(at) ~= 'string' then return nil end
  local began, score, id, priority = string.match(at, '^(%S+) (%S+) (%S+) ?(%-?%d*)$')
  began = tonumber(began)
  if began and overlooks(began) then return nil end
  if began and score_of(score) and began <= now and now - began <= KEPT_FOR then
    return { began = began, score = score, id = id, priority = priority ~= '' and priority or '0' }
  end
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
  local n, level = #positions.kept, at.priority ~= '0' and ' ' .. at.priority or ''
  positions.kept[n + 1] = key
  positions.kept[n + 2] = string.format('%.6f %s %s%s', began, at.score, at.id, level)
end

function positions.finish()
  local kept = positions.kept
  for i = 1, #kept, 2 do redis.call('SET', kept[i], kept[i + 1], 'EX', 2 * KEPT_FOR) end
end
