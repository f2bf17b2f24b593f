-- marks: changes the mark of a group: whether tasks can be opened in it.
--
-- KEYS:
--  1. calls of this client
--  2. groups: the marks of groups
--  3. index of the group
--
-- ARGV:
--  1. call slot
--  2. sequence number
--  3. name of the group
--  4. the mark that the group must have, or '' for no mark
--  5. the new mark, or '' to remove the mark
--
-- Returns '+' and the mark that the group had. If this is another mark than the required one, the script has changed
-- nothing. Returns '-' if the group has no tasks, and '!reason' if Redis cannot change the mark. It returns the error
-- 'TDFSTALE' as transact.lua does.

local group, required, new = ARGV[3], ARGV[4], ARGV[5]

local answer, stale = answered()
if answer or stale then return answer or stale end

local mark, wrong = mark_of(KEYS[2], group)
local wrong_index, size = not_sorted(KEYS[3])
if wrong_index then return wrong_index end
answer = wrong or size == 0 and '-' or '+' .. (mark or '')
if not wrong and size > 0 and mark == required then
  if new == '' then
    redis.call('HDEL', KEYS[2], group)
  else
    redis.call('HSET', KEYS[2], group, new .. ' ' .. now_text)
  end
end
remember(answer)
return answer
