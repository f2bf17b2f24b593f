-- prelude: what the scripts share. It stands before each of them. KEYS[1] of a script with slots is the hash with the
-- last call of each slot of this client.

local ARGV, KEYS = ARGV, KEYS -- locals are faster

local INF = 1e300 -- "inf": not every tonumber knows the word

local clock = redis.call('TIME')
local now = tonumber(clock[1]) + tonumber(clock[2]) / 1000000

-- A script keeps Redis from its other clients. If it can leave work to the next call, it does so after this time in
-- seconds, or a multiple of it.
local BUDGET = 0.003
local function spent(times)
  local t = redis.call('TIME')
  return tonumber(t[1]) + tonumber(t[2]) / 1000000 - now > BUDGET * times
end

-- With six decimals; tostring would round.
local function text(t)
  if t >= INF then return 'inf' end
  return string.format('%.6f', t)
end

-- A number of 0 or more, the default for no value, and nil for anything else.
local function number(s, default)
  if not s or s == '' then return default end
  local n = tonumber(s) or tonumber((string.gsub(string.lower(s), '^(%d+)e', '%1.0e'))) -- for the embedded Redis
  if n and n >= 0 then return n end -- not NaN
  if string.match(string.lower(s), '^%+?inf$') or string.match(string.lower(s), '^%+?infinity$') then return INF end
end

-- A score as Redis prints it. The embedded Redis prints 9e+09, and its tonumber needs 9.0e+09.
local function score_of(s) return tonumber(s) or tonumber((string.gsub(s, 'e', '.0e', 1))) end

-- The number of a round as the rules read it: any invalid number is 0.
local function round_of(s)
  if s and #s <= 5 and string.match(s, '^[1-9]%d*$') then return s end
  return '0'
end

-- These read arguments in order: take the next one, and take_list a count and `each` times as many arguments. A
-- script sets `cursor` to the last argument that it has read itself.
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

-- The answer to the slot's call with that number. It is nil for a new call, and an error if a later call was already
-- made.
local function answered(slot, sequence)
  local last = slot ~= '' and redis.call('HGET', KEYS[1], slot)
  if not last then return nil end
  local done, answer = string.match(last, '^(%d+)\n(.*)$')
  if tonumber(done) == sequence then return answer end
  if tonumber(done) > sequence then return nil, redis.error_reply('TDFSTALE a later call was answered') end
end

-- The calls of a client expire a day after its last one.
local function remember(slot, sequence, answer)
  if slot == '' then return end
  redis.call('HSET', KEYS[1], slot, string.format('%.0f\n', sequence) .. answer)
  redis.call('EXPIRE', KEYS[1], 86400)
end

-- An error reply if the key holds anything but a sorted set. Scripts check this before their first write, since Redis
-- keeps the writes before an error.
local function not_sorted(key)
  local size = redis.pcall('ZCARD', key)
  if type(size) == 'table' then return redis.error_reply('WRONGTYPE ' .. key .. ' is not a sorted set') end
end

local function bulk(command, key, of)
  for i = 1, #of, 500 do redis.call(command, key, unpack(of, i, math.min(i + 499, #of))) end
end

-- A few tokens are enough: a component that takes one and leaves work behind puts one back. Unused tokens expire
-- after an hour.
local TOKENS = { '1', '1', '1', '1', '1', '1', '1', '1' }
local function wake(key, tokens)
  tokens = math.min(tokens, #TOKENS)
  local there = redis.pcall('LPUSH', key, unpack(TOKENS, 1, tokens))
  if type(there) == 'table' then return end -- the key is no list; without a token, a component wakes up later
  if there > #TOKENS then redis.call('LTRIM', key, 0, #TOKENS - 1) end
  if there == tokens then redis.call('EXPIRE', key, 3600) end
end

-- Ids are below this number, so that a score in a group's index can hold a state and an id.
local IDS_END = 1099511627776

-- The task's score in the index of its group: by state, then by id.
local function place(code, id) return string.format('%.0f', code * IDS_END + tonumber(id)) end

-- The key of the index of a task's group. It is nil if the task has no group, or if the key holds anything but an
-- index.
local group_indexes = {}
local function group_index(prefix, group, id)
  if not group or group == '' or tonumber(id) >= IDS_END then return nil end
  local key = prefix .. group
  if group_indexes[key] == nil then group_indexes[key] = not not_sorted(key) end
  return group_indexes[key] and key or nil
end

-- The log with one more line. Of more than 100 lines, the first 10 and the last 90 stay.
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
