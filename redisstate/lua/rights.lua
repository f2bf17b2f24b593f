-- rights: fails if the user lacks the right to use a command that every move of a task needs. It leaves no changes.
--
-- KEYS:
--  1. due
--  2. the record of this client's calls
--
-- ARGV:
--  1. '1' to try the commands that write, too
--
-- Returns 1.

redis.call('TIME')
redis.call('ZSCORE', KEYS[1], 'rights')
redis.call('HMGET', KEYS[2], 'rights')
if ARGV[1] == '1' then
    redis.call('ZREM', KEYS[1], 'rights')
    redis.call('ZADD', KEYS[1], 'XX', 0, 'rights')
    redis.call('HDEL', KEYS[2], 'rights')
    redis.call('HSET', KEYS[2], 'rights', '1')
    redis.call('HDEL', KEYS[2], 'rights')
end
return 1
