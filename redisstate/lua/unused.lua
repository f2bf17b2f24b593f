-- unused: removes stored programs or blobs that were not used for a long time. Each is removed only if it was not used
-- in the meantime.
--
-- KEYS: programs_used, programs, program_owners, and the keys of the programs; for blobs, the same three keys of theirs
-- ARGV: the time before which the last use of each must lie, and the SHA-256 sums
--
-- Returns the SHA-256 sums of those that are removed.

local wrong = not_sorted(KEYS[1]) or not_sorted(KEYS[2])
if wrong then return wrong end

local before, removed = tonumber(ARGV[1]), {}
for i = 2, #ARGV do
  local sum, key = ARGV[i], KEYS[i + 2]
  local used = score_of(redis.call('ZSCORE', KEYS[1], sum) or 'none') -- nil for a pinned program on the embedded Redis
  if used and used < before then
    redis.call('ZREM', KEYS[1], sum)
    redis.call('ZREM', KEYS[2], sum)
    redis.pcall('HDEL', KEYS[3], sum)
    if not key or redis.call('UNLINK', key) == 1 then removed[#removed + 1] = sum end
  end
end
return removed
