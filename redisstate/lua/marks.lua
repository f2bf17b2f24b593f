-- marks: changes the mark of a group: whether tasks can be opened in it.
--
-- KEYS: calls of this client, groups (the marks of groups), index of the group
-- ARGV: call slot, sequence number, name of the group, the mark that the group must have ('' for none), the new mark
-- ('' if tasks can be opened from now on)
--
-- The script wakes the server, because tasks may wait for the end of the group.
--
-- Returns '+' and the mark that the group had. If this is another mark than the required one, the script has changed
-- nothing. Returns '-' if the group has no tasks, and '!reason' if Redis cannot change the mark. It returns the error
-- 'TDFSTALE' as transact.lua does.

local group, required, new = ARGV[3], ARGV[4], ARGV[5]

local answer = answered()
if answer then return answer end

local mark, wrong = mark_of(KEYS[2], group)
local wrong_index, size = not_sorted(KEYS[3])
if wrong_index then return wrong_index end
answer = wrong or size == 0 and '-' or '+' .. (mark or '')
if not wrong and size > 0 and mark == required then
  call('HSET', KEYS[2], group, new .. ' ' .. now_text)
  wake(string.sub(KEYS[2], 1, -1 - #'groups') .. 'wake:server', 1)
end
remember(answer)
return answer
