-- Uses the commands that every move of a task needs, and changes nothing: it fails if the user lacks one of them.
--
-- KEYS: due, and the record of this client's calls
-- ARGV: 1: also those that write
-- Answer: 1

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
