-- write: carries out small commands in one step, even if Redis has reached its maxmemory. The commands are writes that
-- are safe to repeat, such as heartbeats of servers and changes of settings.
--
-- KEYS: the key of each command
-- ARGV: for each command: its name, the number of the arguments that follow the key, and these arguments

for i = 1, #KEYS do
  local name, words = take(), take_list(1)
  redis.call(name, KEYS[i], unpack(words))
end
