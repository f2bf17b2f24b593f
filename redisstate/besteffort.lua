-- note: carries out small commands, as they are given, also where Redis is full.
--
-- KEYS  the key of each command
-- ARGV  for each command: its name, and n, n words that follow the key
--
-- Nobody's work depends on what is noted so, and it may be noted twice: who is there, and since when.

for i = 1, #KEYS do
  local name, words = take(), take_list(1)
  redis.call(name, KEYS[i], unpack(words))
end
