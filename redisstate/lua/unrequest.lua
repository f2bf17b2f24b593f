-- unrequest: removes the answers to a request that Redis has refused, unless a call of the request has succeeded.
--
-- KEYS: the hash with the answers of the request
--
-- Returns '+' if the request is removed, and '!' if one of its calls has carried out something.

for _, answer in ipairs(redis.call('HVALS', KEYS[1])) do
  if string.find(answer, '\n+', 1, true) then return '!' end
end
redis.call('DEL', KEYS[1])
return '+'
