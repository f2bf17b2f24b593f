-- noticeturn: stores how an attempt to deliver a notice has ended, and hands out the next notice that is due.
--
-- KEYS: notices, notices_due
-- ARGV: the id of the notice of the attempt ('' for none), the notice as the attempt has left it, the seconds until its
-- next attempt ('' for no further one), and the seconds after which the next notice is handed out again, if nothing is
-- heard of it; 0 hands out none
--
-- Returns the id and the text of a notice that is due, or nothing. If the call is repeated, the notice that the first
-- call has handed out waits for its time.

local notices, due = unpack(KEYS)
local id, left, delay, lease = unpack(ARGV)

local wrong = not_sorted(due)
if wrong then return wrong end

if id ~= '' then
  local kept = redis.call('HEXISTS', notices, id) == 1
  if kept then redis.call('HSET', notices, id, left) end
  set_score(due, kept and delay ~= '' and text(now + delay), id)
end

if tonumber(lease) == 0 then return {} end
for _, next in ipairs(redis.call('ZRANGEBYSCORE', due, '-inf', now_text, 'LIMIT', 0, 100)) do
  local notice = redis.call('HGET', notices, next)
  if notice then
    redis.call('ZADD', due, text(now + lease), next)
    return { next, notice }
  end
  redis.call('ZREM', due, next)
end
return {}
