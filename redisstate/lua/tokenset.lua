-- tokenset: adds, replaces or removes a token.
--
-- KEYS: calls of this client, tokens, tokens_used
-- ARGV: call slot, sequence number, name of the token, its text or '' to remove it, the maximum number of tokens,
-- the text that the token must have so that it is replaced, or ''
--
-- Returns '+' if the script has added, replaced or removed the token. It changes nothing and returns '=' if a token
-- with this name exists, '-' if none exists (to replace: none with this text), and '^' if there would be too many. It
-- returns the error 'TDFSTALE' as transact.lua does.

local tokens, used, name, definition, most, replaced = KEYS[2], KEYS[3], unpack(ARGV, 3)

local answer = answered()
if answer then return answer end

local wrong = not_sorted(used)
if wrong then return wrong end
local exists = call('HEXISTS', tokens, name) == 1
if replaced ~= '' then
  answer = call('HGET', tokens, name) == replaced and '+' or '-'
elseif definition == '' then
  answer = exists and '+' or '-'
elseif exists then
  answer = '='
else
  answer = call('HLEN', tokens) >= tonumber(most) and '^' or '+'
end

-- From here on, the script writes.
if answer == '+' and definition == '' then
  call('HDEL', tokens, name)
  call('ZREM', used, name)
elseif answer == '+' then
  call('HSET', tokens, name, definition)
  call('ZADD', used, 0, name)
end
remember(answer)
return answer
