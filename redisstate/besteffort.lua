-- besteffort: carries out small commands, even if Redis has reached its maxmemory.
--
-- KEYS  the key of each command
-- ARGV  for each command: its name, then n, then the n arguments that follow the key
--
-- The commands are writes that are safe to repeat and safe to lose. Heartbeats of servers are an example.

for i = 1, #KEYS do
  local name, words = take(), take_list(1)
  redis.call(name, KEYS[i], unpack(words))
end
