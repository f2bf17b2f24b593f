-- prelude: code that the scripts share. It stands before the source of each script. Some scripts use call slots. Their
-- KEYS[1] is a hash with the last call of each call slot of this client.

local ARGV, KEYS = ARGV, KEYS -- locals are faster

local INF = 1e300 -- stands for "inf", because not every tonumber knows that word

local clock = redis.call('TIME')
local now = tonumber(clock[1]) + tonumber(clock[2]) / 1000000

-- While a script runs, Redis serves no other client. If a script can leave work to the next call, it does so after
-- BUDGET seconds, or after a multiple of this time.
local BUDGET = 0.003
local function spent(times)
  local t = redis.call('TIME')
  return tonumber(t[1]) + tonumber(t[2]) / 1000000 - now > BUDGET * times
end

-- Returns a number with six decimals, because tostring would round it.
local function text(t)
  if t >= INF then return 'inf' end
  return string.format('%.6f', t)
end

-- Returns a number of 0 or more. Returns the default if there is no value, and nil if the value is not such a number.
local function number(s, default)
  if not s or s == '' then return default end
  local n = tonumber(s) or tonumber((string.gsub(string.lower(s), '^(%d+)e', '%1.0e'))) -- for the embedded Redis
  if n and n >= 0 then return n end -- not NaN
  if string.match(string.lower(s), '^%+?inf$') or string.match(string.lower(s), '^%+?infinity$') then return INF end
end

-- Returns the number of a score that Redis printed. The embedded Redis prints 9e+09, but its tonumber needs 9.0e+09.
local function score_of(s) return tonumber(s) or tonumber((string.gsub(s, 'e', '.0e', 1))) end

-- Returns the number of a round as the rules in Go read it: any invalid number is 0.
local function round_of(s)
  if s and #s <= 5 and string.match(s, '^[1-9]%d*$') then return s end
  return '0'
end

-- These functions read arguments in order. take reads the next argument. take_list reads a count, and then `each`
-- arguments per element. A script sets `cursor` to the last argument that it has read itself.
local cursor = 0
local function take()
  cursor = cursor + 1
  return ARGV[cursor]
end

local function take_list(each)
  local taken = {}
  for i = 1, each * tonumber(take()) do taken[i] = take() end
  return taken
end

-- Returns the stored answer to the call slot's call with this number. Returns nil for a new call, and an error if a
-- later call was already made.
local function answered(slot, sequence)
  local last = slot ~= '' and redis.call('HGET', KEYS[1], slot)
  if not last then return nil end
  local done, answer = string.match(last, '^(%d+)\n(.*)$')
  if tonumber(done) == sequence then return answer end
  if tonumber(done) > sequence then return nil, redis.error_reply('TDFSTALE a later call was answered') end
end

-- The stored answers of a client expire a day after its last call.
local function remember(slot, sequence, answer)
  if slot == '' then return end
  redis.call('HSET', KEYS[1], slot, string.format('%.0f\n', sequence) .. answer)
  redis.call('EXPIRE', KEYS[1], 86400)
end

-- Returns an error reply if the key holds anything but a sorted set. Scripts check this before their first write,
-- because Redis does not undo writes when a script fails.
local function not_sorted(key)
  local size = redis.pcall('ZCARD', key)
  if type(size) == 'table' then return redis.error_reply('WRONGTYPE ' .. key .. ' is not a sorted set') end
end

local function bulk(command, key, of)
  for i = 1, #of, 500 do redis.call(command, key, unpack(of, i, math.min(i + 499, #of))) end
end

-- A few tokens are enough: a component that takes a token and leaves work behind puts a token back. Unused tokens
-- expire after an hour.
local TOKENS = { '1', '1', '1', '1', '1', '1', '1', '1' }
local function wake(key, tokens)
  tokens = math.min(tokens, #TOKENS)
  local there = redis.pcall('LPUSH', key, unpack(TOKENS, 1, tokens))
  if type(there) == 'table' then return end -- the key is no list; the component gets no token, and wakes up later
  if there > #TOKENS then redis.call('LTRIM', key, 0, #TOKENS - 1) end
  if there == tokens then redis.call('EXPIRE', key, 3600) end
end

-- All ids are below this number, so that a score in a group's index can hold both a state and an id.
local IDS_END = 1099511627776

-- Returns the task's score in the index of its group. The scores order tasks by state, then by id.
local function place(code, id) return string.format('%.0f', code * IDS_END + tonumber(id)) end

-- Returns the key of the index of a task's group. Returns nil if the task has no group, or if the key holds anything
-- but an index.
local group_indexes = {}
local function group_index(prefix, group, id)
  if not group or group == '' or tonumber(id) >= IDS_END then return nil end
  local key = prefix .. group
  if group_indexes[key] == nil then group_indexes[key] = not not_sorted(key) end
  return group_indexes[key] and key or nil
end

-- Returns the log with one more line. If there are more than 100 lines, only the first 10 and the last 90 stay.
local function logged(log, at, who, what)
  local line = at .. ' ' .. who .. ': ' .. what
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
