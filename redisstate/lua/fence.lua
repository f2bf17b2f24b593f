-- fence: raises the counter of ids if Redis may have forgotten ids that it gave out (docs/guarantees.md, "What Redis
-- keeps").
--
-- KEYS: schema, replication_id, task_id
-- ARGV: the replication id of this Redis, the least number of ids to skip, the layout version to write into a new
-- namespace, or '', and an id that Redis has forgotten to have given out, or ''
--
-- The number of skipped ids grows by 100,000 in each second, for three minutes, and then starts again. So if the skip
-- itself is lost in another failover, the next one leads to other ids: no Redis opens tasks faster than this.
--
-- Returns the number of ids that it skipped.

local schema, known, counter = KEYS[1], redis.pcall('GET', KEYS[2]), redis.pcall('GET', KEYS[3])
local last, forgotten = type(counter) == 'string' and tonumber(counter), tonumber(ARGV[4])
if redis.call('EXISTS', schema) == 0 then
  if ARGV[3] == '' then return 0 end -- the namespace may be another program's
  redis.call('SET', schema, ARGV[3])
  if ARGV[1] ~= '' then redis.call('SET', KEYS[2], ARGV[1]) end
  if not forgotten then return 0 end
  last = last or 0
elseif forgotten then
  if last and last >= forgotten then return 0 end -- another client has skipped the ids
elseif known == ARGV[1] or type(known) == 'table' or ARGV[1] == '' then
  return 0
end

local skipped = 0
if forgotten then last = math.max(last or 0, forgotten) end
if last then
  local clock = redis.call('TIME')
  skipped = ARGV[2] + clock[1] % 180 * 100000 + math.floor(clock[2] / 10)
  redis.call('SET', KEYS[3], string.format('%.0f', last + skipped))
end
if ARGV[1] ~= '' then redis.call('SET', KEYS[2], ARGV[1]) end
return skipped
