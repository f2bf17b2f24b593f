-- heartbeat: stores a worker's heartbeat. With its first heartbeat, a worker takes its name. Later heartbeats keep the
-- name. They have all that the worker reports about itself, or only what has changed since its registration.
--
-- KEYS: the worker's hash, workers, names of all workers ever seen, counter for numbers of names, number of this name,
-- calm (the end of the grace period), servers
--
-- ARGV:
--  1. name
--  2. boot id of this worker
--  3. '1' to take the name, '2' to take it with a registration that may be repeated, '' to keep it and report
--     everything, '+' to keep it and the other properties
--  4. boot id of a worker that is known to be gone, or ''
--  5. time of the owner's last heartbeat, as far as this worker knows, or ''
--  6. time since which this worker has looked for a later heartbeat of the owner and seen none, or ''
--  7. seconds for which the worker's hash stays after its last heartbeat; with '+', only if the hash does not say so
-- - the properties and values that the worker reports about itself
--
-- Returns { '+', name of the user who drained the worker or '', now, the property `giving_up` or '' }. With '+',
-- returns { '?' } if the worker has signed off, or is unknown. Then nothing has changed. If another worker owns the
-- name, returns { '-', now, end of the grace period, host, pid, process, boot id, last heartbeat and lease of the
-- owner }.
--
-- A name is free if its owner has signed off, is known to be gone, or has been silent for longer than its lease. A
-- silent owner may be alive, if Redis was unavailable. So one of these facts must prove that Redis was available: a
-- server has sent a heartbeat after the end of the lease (after an outage, it would have started a grace period), or
-- this worker has seen no heartbeat of the owner for longer than the lease. During the grace period, no lease counts as
-- ended. The owner keeps the name until another worker takes it.

local NUMBER_KEPT = 30 * 86400
local key, workers, names, counter, numbered, calm, servers = unpack(KEYS)
local name, boot, taking, gone, looked_at, looking_since, listed = unpack(ARGV, 1, 7)

-- If HMGET returns an error, the key is not a hash.
local h = redis.pcall('HMGET', key, 'boot', 'state', 'seen', 'lease', 'host', 'pid', 'process', 'drain', 'giving_up',
  'remember')
if h.err then
  redis.call('DEL', key)
  h = {}
end
local wrong = not_sorted(workers) or not_sorted(servers)
if wrong then return wrong end
local grace_until = number(redis.call('GET', calm), 0) or 0

local function silent()
  local seen, lease = number(h[3], 0) or 0, number(h[4], 0) or 0
  if math.abs(now - seen) <= lease or now < grace_until then return false end
  if tonumber(looked_at) == seen and now - looking_since > lease then return true end
  local server = redis.call('ZREVRANGE', servers, 0, 0, 'WITHSCORES')[2]
  return server and math.abs(score_of(server) - seen) > lease
end

local function free()
  if not h[1] or h[1] == boot then return true end
  return (taking == '1' or taking == '2') and (h[2] == 'gone' or h[1] == gone or silent())
end

if not free() then
  return { '-', now_text, text(grace_until), h[5] or '', h[6] or '', h[7] or '', h[1], h[3] or '0', h[4] or '0' }
end

local telling, giving_up = { key, 'boot', boot, 'seen', now_text }, h[9]
if taking == '+' then
  if not h[1] or h[2] == 'gone' then return { '?' } end
  listed = string.format('%.0f', math.ceil(number(h[10], 0) or listed))
  put(telling, 'state', h[8] and 'draining' or 'working') -- what the worker reports may replace it
elseif taking == '2' and h[1] and h[1] ~= boot then
  giving_up = now_text -- until the claims of the earlier worker are given up
  put(telling, 'giving_up', giving_up)
end
for i = 8, #ARGV do telling[#telling + 1] = ARGV[i] end
redis.call('HSET', unpack(telling))
if h[8] then redis.call('PERSIST', key) else redis.call('EXPIRE', key, listed) end
redis.call('ZADD', workers, now_text, name)
redis.pcall('SADD', names, name)
-- TTL returns -2 if there is no key. It returns -1 for a key of the original TDF, which has no expiry.
local left = redis.call('TTL', numbered)
if left == -2 then
  local number_of_name = redis.pcall('INCR', counter)
  if type(number_of_name) == 'number' then
    redis.call('SET', numbered, string.format('%.0f', number_of_name), 'EX', NUMBER_KEPT)
  end
elseif left >= 0 then
  redis.call('EXPIRE', numbered, NUMBER_KEPT)
end
return { '+', h[8] or '', now_text, giving_up or '' }
