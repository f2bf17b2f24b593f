-- prelude: code that the scripts share, and that fast paths need, too. Go puts it before the source of most scripts,
-- and common.lua behind it. Each call of a script creates all of its functions, so a fast path comes before the others.
-- If a script uses call slots, its KEYS[1] is a hash that holds the last call of each of this client's call slots.

local ARGV, KEYS, call, try, unpack = ARGV, KEYS, redis.call, redis.pcall, unpack -- access to locals is faster

local clock = call('TIME')
local now_text = clock[1] .. '.' .. (#clock[2] == 6 and clock[2] or string.sub('00000' .. clock[2], -6))

-- The first two arguments of a script with call slots are the call slot and the sequence number. Returns the stored
-- answer if this call of the call slot was already answered, an error reply if a later one was, and nil for a new call.
local function answered()
  local last, sequence = ARGV[1] ~= '' and call('HGET', KEYS[1], ARGV[1]), ARGV[2]
  if not last then return nil end
  local cut = string.find(last, '\n', 1, true)
  local done = string.sub(last, 1, cut - 1)
  if done == sequence then return string.sub(last, cut + 1) end
  if #done > #sequence or #done == #sequence and done > sequence then -- these are numbers without leading zeros
    return redis.error_reply('TDFSTALE a later call was answered')
  end
end

-- Stores the answer to a call of a call slot. All answers of a client expire together, a day after the last renewal of
-- their expiry. The first call of a call slot renews the expiry. So does each call whose sequence number is a multiple
-- of 100. In each hour with calls, the client gives at least one call a sequence number that is a multiple of 100.
local function remember(answer)
  if ARGV[1] == '' then return end
  local new = call('HSET', KEYS[1], ARGV[1], ARGV[2] .. '\n' .. answer)
  if new == 1 or string.sub(ARGV[2], -2) == '00' then call('EXPIRE', KEYS[1], 86400) end
end

-- Puts wake tokens into a list. A few tokens are enough: if a component takes a token but leaves some of the work, a
-- script puts in a new token. Unused tokens expire after an hour.
local MOST_TOKENS = 8
local function wake(key, tokens)
  local there = try('LLEN', key)
  if type(there) == 'table' or there >= MOST_TOKENS then return end -- without a token, the component wakes up later
  call('LPUSH', key, unpack({ '1', '1', '1', '1', '1', '1', '1', '1' }, 1, math.min(tokens, MOST_TOKENS - there)))
  if there == 0 then call('EXPIRE', key, 3600) end
end

-- All ids are below this number, so that a score in an index can hold both a state and an id.
local IDS_END = 1099511627776
