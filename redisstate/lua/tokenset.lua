-- tokenset: adds or removes a token.
--
-- KEYS:
--  1. calls of this client
--  2. tokens
--  3. tokens_used
--
-- ARGV:
--  1. call slot
--  2. sequence number
--  3. name of the token
--  4. text of the token, or '' to remove the token
--  5. the maximum number of tokens
--
-- Returns '+' if the script has added or removed the token. It changes nothing and returns '=' if a token with this
-- name exists, '-' if none exists, and '^' if there would be too many. It returns the error 'TDFSTALE' as transact.lua
-- does.

local slot, sequence, name, text = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]

local answer, stale = answered(slot, sequence)
if answer or stale then return answer or stale end

local wrong = not_sorted(KEYS[3])
if wrong then return wrong end
local exists = redis.call('HEXISTS', KEYS[2], name) == 1
if text == '' then
  answer = exists and '+' or '-'
elseif exists then
  answer = '='
else
  answer = redis.call('HLEN', KEYS[2]) >= tonumber(ARGV[5]) and '^' or '+'
end

-- From here on, the script writes.

if answer == '+' and text == '' then
  redis.call('HDEL', KEYS[2], name)
  redis.call('ZREM', KEYS[3], name)
elseif answer == '+' then
  redis.call('HSET', KEYS[2], name, text)
  redis.call('ZADD', KEYS[3], 0, name)
end
remember(slot, sequence, answer)
return answer
