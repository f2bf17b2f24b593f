-- common: code that most scripts share, behind prelude.lua.

local now = clock[1] + clock[2] / 1000000 -- Lua converts texts to numbers where it computes with them

local INF = 1e300 -- stands for infinity, because tonumber cannot read "inf" in every Redis

-- Returns the text of a number with six decimals, because tostring would round the number.
local function text(t)
  if t >= INF then return 'inf' end
  return string.format('%.6f', t)
end

-- Returns the number of a round as Go reads it: an invalid number counts as '0'.
local function round_of(s)
  if s and s ~= '0' and #s <= 5 and string.match(s, '^[1-9]%d*$') then return s end
  return '0'
end

-- While a script runs, Redis serves no other client. So after BUDGET seconds, or a multiple of this time, some scripts
-- stop and leave the rest of the work to the next call.
local BUDGET = 0.003
local spent

-- From Redis 7.2, TIME returns the start of the script. From Redis 7.4 and Valkey 8.0, os.clock returns the CPU time of
-- Redis. Between these versions, no clock runs in a script, so each call of spent counts as a millisecond.
do
  local stands, cpu, start, calls = (redis.REDIS_VERSION_NUM or 0) >= 0x70200
  if stands then
    cpu, calls = rawget(_G, 'os'), 0 -- the name of a missing library would be an error
    start = cpu and cpu.clock()
  end
  function spent(times)
    local passed
    if cpu then
      passed = cpu.clock() - start
    elseif stands then
      calls = calls + 1
      passed = calls / 1000
    else
      local t = redis.call('TIME')
      passed = t[1] + t[2] / 1000000 - now
    end
    return passed > BUDGET * times
  end
end

-- Returns an error reply if the key exists but is not a sorted set. Otherwise, returns nil and the size of the set.
-- Scripts check this before their first write, because Redis does not undo the writes of a script that fails.
local function not_sorted(key)
  local size = try('ZCARD', key)
  if type(size) == 'table' then return redis.error_reply('WRONGTYPE ' .. key .. ' is not a sorted set') end
  return nil, size
end

-- Returns the list at a key of a table of lists.
local function into(all, key)
  local of = all[key]
  if not of then
    of = {}
    all[key] = of
  end
  return of
end

-- Sends a command with a key and many arguments, in pieces. The function `run` is call or try. With try, bulk returns
-- the first error reply, and stops there.
local function bulk(command, key, of, run)
  local n = #of
  for i = 1, n, 500 do
    local reply = (run or call)(command, key, unpack(of, i, i + 499 < n and i + 499 or n))
    if type(reply) == 'table' and reply.err then return reply end
  end
end

-- Makes the server check the tasks that are held for a reason, if there are any.
local function check_held(prefix, reason)
  if redis.pcall('ZADD', prefix .. 'held', 'XX', 'CH', now_text, reason) == 1 then wake(prefix .. 'wake:server', 1) end
end
