-- activity: adds numbers to the counts of queues.
--
-- KEYS:
--  1. activity
--  2. the number of this client's last call
--
-- ARGV:
--  1. the number of this call. If it is that of the last call, the script adds nothing
--  2. prefix of the keys of counts
--  3. the largest number of queues that have counts of their own
--  4. the queue that counts for all others
--  5. seconds after which counts expire that did not grow
-- - for each queue: its name, what the call adds to its activity, the number of its counts, and these counts: the
--   name of each, and what the call adds to it
--
-- The activity of a queue is its score in KEYS[1]. Returns '+'.

local queues, prefix, most, other, keep = KEYS[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]
cursor = 5

if redis.pcall('GET', KEYS[2]) == ARGV[1] then return '+' end
local wrong, size = not_sorted(queues)
if wrong then return wrong end

-- From here on, the script writes.

-- Forgets the least active queues whose counts have expired.
local function forget()
  for _, name in ipairs(redis.call('ZRANGE', queues, 0, 15)) do
    if redis.call('EXISTS', prefix .. name) == 0 then size = size - redis.call('ZREM', queues, name) end
  end
end

local function is_full() return size - (redis.call('ZSCORE', queues, other) and 1 or 0) >= most end

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
redis.call('SET', KEYS[2], ARGV[1], 'EX', 86400)
return '+'
