-- pause: pauses or resumes queues, groups or the namespace. It moves no task. Each claim names the version of the
-- pauses that its client knows. This script changes the version. So a claim that does not know the pause yet gets no
-- tasks.
--
-- KEYS: partitions, paused, wake list of open
-- ARGV: '1' to pause or '' to resume, name of the user, the maximum number of pauses, the prefix of the keys of wake
-- lists, and what to pause or resume
--
-- When a pause ends, the script wakes the workers of some partitions. If there are very many partitions, the workers of
-- the others notice the end when they next claim.
--
-- Returns the number of entries that have changed. If there would be too many pauses, the script changes nothing and
-- returns -1.

local partitions, paused, open = unpack(KEYS)
local pausing, who, most, wakes = ARGV[1] == '1', unpack(ARGV, 2, 4)

local changing = {}
for i = 5, #ARGV do
  local there = redis.call('HEXISTS', paused, ARGV[i]) == 1
  if there ~= pausing then changing[#changing + 1] = ARGV[i] end
end
if #changing == 0 then return 0 end
if pausing and redis.call('HLEN', paused) + #changing > tonumber(most) then return -1 end
local found = redis.call('HSCAN', partitions, 0, 'COUNT', 500)[2]

-- From here on, the script writes.
for _, name in ipairs(changing) do
  if pausing then redis.call('HSET', paused, name, now_text .. ' ' .. who) else redis.call('HDEL', paused, name) end
end
redis.call('HSET', partitions, 'version', now_text)
if not pausing then
  wake(open, MOST_TOKENS)
  for i = 1, math.min(#found, 2000), 2 do
    local name, head = found[i], found[i + 1]
    if name ~= 'version' and name ~= 'default' and head ~= '' then wake(wakes .. name, MOST_TOKENS) end
  end
  -- Without partitions and pauses, claims need no version.
  if redis.call('EXISTS', paused) == 0 and redis.call('HLEN', partitions) == 1 then redis.call('UNLINK', partitions) end
end
return #changing
