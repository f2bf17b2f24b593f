-- pause: pauses or resumes queues, groups or the namespace. It moves no task.
--
-- Each claim names the version of the pauses that its client knows. This script changes the version. So a claim that
-- does not know the pause yet gets no tasks.
--
-- KEYS:
--  1. partitions
--  2. paused
--  3. wake list of open
--
-- ARGV:
--  1. '1' to pause, '' to resume
--  2. name of the user
--  3. the maximum number of pauses
--  4. prefix of the keys of wake lists
-- - what to pause or resume
--
-- When a pause ends, the script wakes the workers of some partitions. If there are very many partitions, the workers of
-- the others notice the end when they next claim.
--
-- Returns the number of entries that have changed. If there would be too many pauses, the script changes nothing and
-- returns -1.

local pausing, who, most = ARGV[1] == '1', ARGV[2], tonumber(ARGV[3])

local changing = {}
for i = 5, #ARGV do
  local there = redis.call('HEXISTS', KEYS[2], ARGV[i]) == 1
  if there ~= pausing then changing[#changing + 1] = ARGV[i] end
end
if #changing == 0 then return 0 end
if pausing and redis.call('HLEN', KEYS[2]) + #changing > most then return -1 end
local partitions = redis.call('HSCAN', KEYS[1], 0, 'COUNT', 500)[2]

-- From here on, the script writes.

for _, name in ipairs(changing) do
  if pausing then
    redis.call('HSET', KEYS[2], name, now_text .. ' ' .. who)
  else
    redis.call('HDEL', KEYS[2], name)
  end
end
redis.call('HSET', KEYS[1], 'version', now_text)
if not pausing then
  wake(KEYS[3], MOST_TOKENS)
  for i = 1, math.min(#partitions, 2000), 2 do
    local name, head = partitions[i], partitions[i + 1]
    if name ~= 'version' and name ~= 'default' and head ~= '' then wake(ARGV[4] .. name, MOST_TOKENS) end
  end
  -- Without partitions and pauses, claims need no version.
  if redis.call('EXISTS', KEYS[2]) == 0 and redis.call('HLEN', KEYS[1]) == 1 then redis.call('UNLINK', KEYS[1]) end
end
return #changing
