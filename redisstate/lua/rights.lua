-- rights: fails if the user lacks the right to use a command that every move of a task needs. It leaves no changes.
--
-- KEYS: due, the record of this client's calls
-- ARGV: '1' to try the commands that write, too
--
-- Returns 1.

call('ZSCORE', KEYS[1], 'rights')
call('HMGET', KEYS[2], 'rights')
if ARGV[1] == '1' then
  call('ZREM', KEYS[1], 'rights')
  call('ZADD', KEYS[1], 'XX', 0, 'rights')
  call('HDEL', KEYS[2], 'rights')
  call('HSET', KEYS[2], 'rights', '1')
  call('HDEL', KEYS[2], 'rights')
end
return 1
