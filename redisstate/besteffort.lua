-- besteffort: carries out small commands, also on a full Redis.
--
-- KEYS  the key of each command
-- ARGV  for each command: its name, then n, then the n arguments that follow the key
--
-- These writes are safe to repeat and safe to lose, such as heartbeats.

for i = 1, #KEYS do
  local name, words = take(), take_list(1)
  redis.call(name, KEYS[i], unpack(words))
end
