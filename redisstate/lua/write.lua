-- write: carries out small commands in one step, even if Redis has reached its maxmemory. The commands are writes that
-- are safe to repeat, such as heartbeats of servers and changes of settings.
--
-- KEYS: the key of each command
-- ARGV: for each command: its name, the number of the arguments that follow the key, and these arguments
--
-- Two commands are functions of prelude.lua and common.lua: `wake LIST TOKENS` and `check PREFIX REASON`.

for i = 1, #KEYS do
  local name, words = take(), take_list(1)
  if name == 'wake' then
    wake(KEYS[i], tonumber(words[1]))
  elseif name == 'check' then
    check_held(KEYS[i], words[1])
  else
    redis.call(name, KEYS[i], unpack(words))
  end
end
