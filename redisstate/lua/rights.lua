-- rights: finds out whether the user lacks the right to a command. It leaves no changes.
--
-- KEYS: due, the record of this client's calls, a key that does not exist
-- ARGV: '' to try commands that read, '1' to try some that write, too, or 'all'
--
-- Returns 1, or the error of Redis if the user lacks the right to a command that every move of a task needs. With
-- 'all', it returns the names of all missing commands.

-- Redis checks the right before the type of the key. So most of these commands fail, because the key gets a string, and
-- change nothing. The key expires, in case the user may not remove it.
local commands = 'SET 1,EXPIRE 60,GET,EXISTS,TYPE,TTL,GETRANGE 0 0,INCR,DECRBY 1,HGET x,HMGET x,HGETALL,HLEN,HEXISTS x,'
  .. 'HKEYS,HVALS,HSTRLEN x,HSCAN 0,HRANDFIELD,HSET x 1,HSETNX x 1,HINCRBY x 1,HDEL x,ZRANGE 0 0,ZREVRANGE 0 0,'
  .. 'ZRANGEBYSCORE 0 0,ZRANGEBYLEX - +,ZSCORE x,ZMSCORE x,ZCOUNT 0 0,ZCARD,ZRANK x,ZADD 1 x,ZINCRBY 1 x,ZREM x,'
  .. 'ZREMRANGEBYRANK 0 0,SRANDMEMBER,SMISMEMBER x,SADD x,SREM x,LINDEX 0,LLEN,LRANGE 0 0,RPUSH x,'
  .. 'LPUSH x,LTRIM 0 0,BLPOP 0,PERSIST,GETDEL,DEL,UNLINK,'

local function refused(name, ...)
  local reply = redis.pcall(name, ...)
  local text = type(reply) == 'table' and reply.err or ''
  return text:find('NOPERM', 1, true) or text:find("can't run this", 1, true) or text:find('ACL failure', 1, true)
end

if ARGV[1] == 'all' then
  local lacks = {}
  for name, rest in commands:gmatch('(%u+)([^,]*),') do
    local words = {}
    for word in rest:gmatch('%S+') do words[#words + 1] = word end
    if refused(name, KEYS[3], unpack(words)) then lacks[#lacks + 1] = name end
  end
  if refused('RENAME', KEYS[3], KEYS[3]) then lacks[#lacks + 1] = 'RENAME' end
  if refused('TIME') then lacks[#lacks + 1] = 'TIME' end
  return lacks
end

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
