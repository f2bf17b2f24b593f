-- find: returns a page of several sorted sets, all read at one moment. It changes nothing.
--
-- KEYS: the sorted sets; a set may occur several times
-- ARGV: 'newest' or 'oldest' (which entries come first), the maximum number of entries to return of each set; then for
-- each key: the score and the member of the entry after which to continue, and the score at which to end. Each of these
-- may be '', which means no limit.
--
-- Returns a list for each key: member, score, member, score and so on, in the order of the set. With 'newest', the list
-- includes the entries with the score at which to end. With 'oldest', it does not.

local newest, most = ARGV[1] == 'newest', tonumber(ARGV[2])

-- Returns the number of entries before the given entry. If `too` is true, the entry itself counts as well. Redis orders
-- entries with equal scores by their members. Many entries may have the same score, so the function makes a binary
-- search.
local function before(key, score, member, too)
  local low = redis.call('ZCOUNT', key, '-inf', '(' .. score)
  local high = redis.call('ZCOUNT', key, '-inf', score)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local m = redis.call('ZRANGE', key, middle, middle)[1]
    if m < member or too and m == member then low = middle + 1 else high = middle end
  end
  return low
end

local function page(key, score, member, stop)
  local first, last -- ranks, counted from 0; the page includes both
  if newest then
    last = (score == '' and redis.call('ZCARD', key) or before(key, score, member, false)) - 1
    first = stop == '' and 0 or redis.call('ZCOUNT', key, '-inf', '(' .. stop)
    first = math.max(first, last - most + 1)
  else
    first = score == '' and 0 or before(key, score, member, true)
    last = (stop == '' and redis.call('ZCARD', key) or redis.call('ZCOUNT', key, '-inf', '(' .. stop)) - 1
    last = math.min(last, first + most - 1)
  end
  if last < first then return {} end
  return redis.call('ZRANGE', key, first, last, 'WITHSCORES')
end

local pages = {}
for i, key in ipairs(KEYS) do
  pages[i] = page(key, ARGV[3 * i], ARGV[3 * i + 1], ARGV[3 * i + 2])
end
return pages
