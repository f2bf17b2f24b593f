-- values: common code that reads arguments, numbers and moments, and collects changes of sorted sets.

-- Returns the time of a moment, or nil for never. The second result is min, if the moment has one. A moment is:
-- - '': now
-- - '-': never
-- - 'after,min,max': now + after, but not before min and not after max
local function moment(spec, at)
  if spec == '' then return at end
  if spec == '-' then return nil end
  local after, least, most = string.match(spec, '^(.-),(.-),(.*)$')
  local t = at + tonumber(after)
  if most ~= '' and t > tonumber(most) then t = tonumber(most) end
  least = tonumber(least)
  if t < least then t = least end
  return t, least
end

local function moment_text(spec, at)
  if spec == '' and at == now then return now_text end
  local t = moment(spec, at)
  return t and text(t)
end

-- Returns the number in a text if it is 0 or more. Returns the default if the text is missing or empty. Returns nil for
-- any other text.
local function number(s, default)
  if not s or s == '' then return default end
  if s == 'inf' then return INF end -- the most frequent text
  local n = tonumber(s) or tonumber((string.gsub(string.lower(s), '^(%d+)e', '%1.0e'))) -- see score_of
  if not n and string.match(s, '^%d+$') then return INF end -- too long for the embedded Redis
  if n and n >= 0 then return n end -- false for NaN
  if string.match(string.lower(s), '^%+?inf$') or string.match(string.lower(s), '^%+?infinity$') then return INF end
end

-- Returns the number in a score that Redis printed. The embedded Redis prints 9e+09, but its tonumber needs 9.0e+09.
local function score_of(s) return tonumber(s) or tonumber((string.gsub(s, 'e', '.0e', 1))) end

-- These functions read arguments in order. The function `take` reads the next argument. The function `take_list` reads
-- the number of elements, and then `each` arguments per element. The function `take_set` reads a list, and returns its
-- elements as a set. A script sets `cursor` to the index of the last argument that it has read itself.
local cursor = 0
local function take()
  cursor = cursor + 1
  return ARGV[cursor]
end

local function take_list(each)
  local first = cursor + 2
  cursor = cursor + 1 + each * ARGV[cursor + 1]
  if cursor < first + 500 then return { unpack(ARGV, first, cursor) } end
  local taken = {}
  for i = first, cursor do taken[i - first + 1] = ARGV[i] end
  return taken
end

local function take_set()
  local set, first = {}, cursor + 2
  cursor = first - 1 + ARGV[first - 1]
  for i = first, cursor do set[ARGV[i]] = true end
  return set
end

local function put(of, score, id)
  local n = #of
  of[n + 1], of[n + 2] = score, id
end

-- Sets the score of a member of a sorted set, or removes the member if the score is nil or false. The set only repeats
-- other data, so if it has a wrong type, the script goes on.
local function set_score(key, score, member)
  if score then try('ZADD', key, score, member) else try('ZREM', key, member) end
end

-- Returns an error reply if the key exists but is not a hash.
local function not_hash(key)
  if type(try('HLEN', key)) == 'table' then return redis.error_reply('WRONGTYPE ' .. key .. ' is not a hash') end
end

-- Returns the scores of members in a sorted set, in the order of the members; false if the set lacks the member.
local function scores_of(key, members)
  local scores = {}
  for i = 1, #members, 500 do
    local page = redis.call('ZMSCORE', key, unpack(members, i, math.min(i + 499, #members)))
    for j = 1, #page do scores[i + j - 1] = page[j] end
  end
  return scores
end
