-- notice: remembers what has been seen, and adds notices to the outbox, each of them once.
--
-- KEYS: noticed, notices, notices_due
-- ARGV: the largest number of notices that are kept, the number of marks; then for each mark: its name, the value that
-- it must have ('' for none), its new value ('' removes it), and the notice to add ('' for none)
--
-- A mark that has another value than it must have has been changed by another server, or by an earlier call that is now
-- repeated. The script leaves it as it is, and adds no notice. Returns the number of notices added.

local noticed, notices, due, most = KEYS[1], KEYS[2], KEYS[3], tonumber(ARGV[1])
cursor = 1

local wrong = not_sorted(due) or not_hash(noticed) or not_hash(notices)
if wrong then return wrong end

-- From here on, the script writes.
local added, marks = 0, take_list(4)
for i = 1, #marks, 4 do
  local mark, before, after, notice = marks[i], marks[i + 1], marks[i + 2], marks[i + 3]
  if (redis.call('HGET', noticed, mark) or '') == before then
    if after == '' then redis.call('HDEL', noticed, mark) else redis.call('HSET', noticed, mark, after) end
    if notice ~= '' then
      local id = redis.call('HINCRBY', noticed, 'last', 1)
      redis.call('HSET', notices, id, notice)
      redis.call('ZADD', due, now_text, id)
      redis.call('HDEL', notices, id - most)
      redis.call('ZREM', due, id - most)
      added = added + 1
    end
  end
end
return added
