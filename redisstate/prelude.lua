-- prelude: what the scripts share; it stands before each of them. KEYS[1], where a script
-- has calls at all, is the hash with the last call of each slot of this client.

local ARGV, KEYS = ARGV, KEYS -- locals are faster

local INF = 1e300 -- "inf": tonumber does not know the word everywhere

local clock = redis.call('TIME')
local now = tonumber(clock[1]) + tonumber(clock[2]) / 1000000

-- A script keeps Redis from its other clients: one that can leave some of its work to the next call
-- does so when it has taken this long, in seconds, or a multiple of it.
local BUDGET = 0.003
local function spent(times)
  local t = redis.call('TIME')
  return tonumber(t[1]) + tonumber(t[2]) / 1000000 - now > BUDGET * times
end

-- To the microsecond; tostring would round.
local function text(t)
  if t >= INF then return 'inf' end
  return string.format('%.6f', t)
end

-- A number from 0 up, the default for none, nil for anything else.
local function number(s, default)
  if not s or s == '' then return default end
  local n = tonumber(s) or tonumber((string.gsub(string.lower(s), '^(%d+)e', '%1.0e'))) -- the embedded one wants 9.0e9
  if n and n >= 0 then return n end -- which NaN is not
  if string.match(string.lower(s), '^%+?inf$') or string.match(string.lower(s), '^%+?infinity$') then return INF end
end

-- A score as Redis prints it. The embedded one prints 9e+09, where its tonumber wants 9.0e+09.
local function score_of(s) return tonumber(s) or tonumber((string.gsub(s, 'e', '.0e', 1))) end

-- A round as it is counted; whatever else stands there is 0, as the rules read it.
local function round_of(s)
  if s and #s <= 5 and string.match(s, '^[1-9]%d*$') then return s end
  return '0'
end

-- Arguments that follow one another: the next one, and a count with so many times `each` behind it.
-- A script sets `cursor` to the last of those before them.
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

-- What this slot's call of that number was answered: nil if it is new, and an error if a
-- later one was already made.
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

-- An error reply if the key holds something else than a sorted set. Scripts ask this before their first
-- write, since Redis takes nothing back that was written before an error.
local function not_sorted(key)
  local size = redis.pcall('ZCARD', key)
  if type(size) == 'table' then return redis.error_reply('WRONGTYPE ' .. key .. ' is not a sorted set') end
end

local function bulk(command, key, of)
  for i = 1, #of, 500 do redis.call(command, key, unpack(of, i, math.min(i + 499, #of))) end
end

-- A few tokens are enough: whoever takes one and leaves work behind puts one back. Those that
-- nobody takes are gone after an hour.
local TOKENS = { '1', '1', '1', '1', '1', '1', '1', '1' }
local function wake(key, tokens)
  tokens = math.min(tokens, #TOKENS)
  local there = redis.pcall('LPUSH', key, unpack(TOKENS, 1, tokens))
  if type(there) == 'table' then return end -- the key is not a list; a lost token costs one sleep
  if there > #TOKENS then redis.call('LTRIM', key, 0, #TOKENS - 1) end
  if there == tokens then redis.call('EXPIRE', key, 3600) end
end

-- Ids are below this, so that a place in a group's index holds a state and an id.
local IDS_END = 1099511627776

-- The task's place in the index of its group: by state, then by id.
local function place(code, id) return string.format('%.0f', code * IDS_END + tonumber(id)) end

-- The key of the index of a task's group; nil if the task has no group, or the key holds something else
-- than an index.
local group_indexes = {}
local function group_index(prefix, group, id)
  if not group or group == '' or tonumber(id) >= IDS_END then return nil end
  local key = prefix .. group
  if group_indexes[key] == nil then group_indexes[key] = not not_sorted(key) end
  return group_indexes[key] and key or nil
end

-- The log with one more line. Of more than 100 lines the first 10 and the last 90 stay.
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
