-- drop: removes a stored program, unless a client has begun to need it. The caller has looked at all tasks with ids up
-- to a last id, and none of them needs the program. The script looks at the tasks that were opened since. So no client
-- opens a task between the look and the removal.
--
-- KEYS: programs_used, programs, the key of the program, task_id, program_owners
-- ARGV: the SHA-256 sum of the program, the time at which the caller began to look, the last id that it knows, the
-- prefix of task keys
--
-- Returns:
-- - '+' if the program is removed
-- - '!' if a client has used the program since the time, or if a new task names it
-- - '=' and an id if there are new tasks after this id, at which the script has not looked

local wrong = not_sorted(KEYS[1]) or not_sorted(KEYS[2])
if wrong then return wrong end

local sum, since, known, tasks = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local used = redis.call('ZSCORE', KEYS[1], sum)
used = used and used ~= 'inf' and used ~= '+Inf' and score_of(used)
if used and used > since then return '!' end

local last = number(redis.call('GET', KEYS[4]), 0) or 0
local to = math.min(last, known + 1000)
for id = known + 1, to do
  local key = tasks .. string.format('%.0f', id)
  local source = redis.pcall('HGET', key, 'source') -- an error reply if the key is not a hash
  if type(source) == 'string' and string.find(source, sum, 1, true) then return '!' end
end
if to < last then return string.format('=%.0f', to) end

redis.call('ZREM', KEYS[1], sum)
redis.call('ZREM', KEYS[2], sum)
redis.pcall('HDEL', KEYS[5], sum)
redis.call('UNLINK', KEYS[3]) -- unlike DEL, UNLINK frees the memory in the background
return '+'
