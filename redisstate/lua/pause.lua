-- pause: pauses or resumes queues, groups or the namespace. It moves no task, but claims read what is paused. When the
-- pause of a group ends, the server returns its tasks.
--
-- KEYS: paused, wake list of open
-- ARGV: '1' to pause or '' to resume, name of the user, the maximum number of pauses, and what to pause or resume
--
-- Returns the number of entries that have changed. If there would be too many pauses, the script changes nothing and
-- returns -1.

local paused, open = unpack(KEYS)
local pausing, who, most = ARGV[1] == '1', unpack(ARGV, 2, 3)
local prefix = string.sub(paused, 1, -1 - #'paused')

local changing = {}
for i = 4, #ARGV do
  local there = call('HEXISTS', paused, ARGV[i]) == 1
  if there ~= pausing then changing[#changing + 1] = ARGV[i] end
end
if #changing == 0 then return 0 end
if pausing and call('HLEN', paused) + #changing > tonumber(most) then return -1 end

-- From here on, the script writes.
for _, name in ipairs(changing) do
  if pausing then call('HSET', paused, name, now_text .. ' ' .. who) else call('HDEL', paused, name) end
  local group = string.match(name, '^group=(.*)$')
  if group and not pausing then check_held(prefix, 'paused=' .. group) end
end
if not pausing then -- the script wakes workers of some requirements; the others notice it when they next claim
  wake(open, MOST_TOKENS)
  for _, name in ipairs(call('ZREVRANGE', prefix .. 'requirements', 0, 999)) do
    local waits = name ~= 'default' and call('HEXISTS', prefix .. 'first', name) == 1
    if waits then wake(prefix .. 'wake:' .. name, MOST_TOKENS) end
  end
end
return #changing
