-- activity: adds numbers to the counts of queues. The activity of a queue is its score in KEYS[1].
--
-- KEYS: activity, the number of this client's last call
-- ARGV: the number of this call (if it is that of the last call, the script adds nothing), the prefix of the keys of
-- counts, the largest number of queues that have counts of their own, the queue that counts for all others, and the
-- seconds after which counts expire that did not grow; then for each queue: its name, what the call adds to its
-- activity, the number of its counts, and the name of each count with what the call adds to it
--
-- Returns '+'.

local queues, last = KEYS[1], KEYS[2]
local this, prefix, most, other, keep = unpack(ARGV, 1, 5)
cursor = 5

if redis.pcall('GET', last) == this then return '+' end
local wrong, size = not_sorted(queues)
if wrong then return wrong end

-- From here on, the script writes.
-- Forgets the least active queues whose counts have expired.
local function forget()
  for _, name in ipairs(redis.call('ZRANGE', queues, 0, 15)) do
    if redis.call('EXISTS', prefix .. name) == 0 then size = size - redis.call('ZREM', queues, name) end
  end
end

local function is_full() return size - (redis.call('ZSCORE', queues, other) and 1 or 0) >= tonumber(most) end

while cursor < #ARGV do
  local queue, activity, counts = take(), take(), take_list(2)
  if is_full() and not redis.call('ZSCORE', queues, queue) then
    forget()
    if is_full() then queue = other end
  end
  redis.call('ZINCRBY', queues, activity, queue)
  size = redis.call('ZCARD', queues)
  for i = 1, #counts, 2 do redis.pcall('HINCRBY', prefix .. queue, counts[i], counts[i + 1]) end
  redis.call('EXPIRE', prefix .. queue, keep)
end
redis.call('SET', last, this, 'EX', 86400)
return '+'
