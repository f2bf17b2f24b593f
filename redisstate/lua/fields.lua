-- fields: reads properties of tasks, all at one moment. It leaves out values that are too long. It changes nothing.
--
-- KEYS: the tasks' hashes
-- ARGV:
--  1. maximum length of a value, in bytes
--  2. maximum length of a value of one round, in bytes; the name of its property contains a colon
--  3. maximum number of bytes of all values together; the first task is returned even if its values are longer
--  4. '1' if values are often too long, or ''
--  5. the number of sets of property names, then the sets; each set is its number of names, then the names. A '?'
--     before a name asks for the length of the value
-- - for each key: the number of its set of names, counted from 1
--
-- Returns a list of values for each key, until the values of the next key would exceed the limit. The values have the
-- order of the names. If a property does not exist, its value is nil. If it is too long, or its name begins with '?',
-- the value is its length. If a key is not a hash, its list is empty.
--
-- Valid values are short, and only other programs write values that are too long. So the script first reads PIECE
-- values at once, and then checks their lengths. After the first value that is too long, or from the beginning if
-- values are often too long, it checks the length of each value first. So it never holds more than PIECE values that
-- are too long.

local most, most_of_round, room = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local PIECE = 18
local careful = ARGV[4] == '1'

local at, sets = 6, {}
for i = 1, tonumber(ARGV[5]) do
  local set = { names = {}, where = {}, longest = {}, lengths = {} }
  local n = tonumber(ARGV[at])
  for j = 1, n do
    local name = ARGV[at + j]
    if string.sub(name, 1, 1) == '?' then
      set.lengths[j] = string.sub(name, 2)
    else
      local k = #set.names + 1
      set.names[k], set.where[k] = name, j
      set.longest[k] = string.find(name, ':', 1, true) and most_of_round or most
    end
  end
  sets[i] = set
  at = at + n + 1
end

-- The next two functions read the properties with the names from index `first` to index `last` of a set. They return
-- nil if the key is not a hash.

local function read_piece(key, set, first, last)
  local values = redis.pcall('HMGET', key, unpack(set.names, first, last))
  if values.err then return nil end
  for i, value in ipairs(values) do
    if value and #value > set.longest[first + i - 1] then
      values[i], careful = #value, true
    end
  end
  return values
end

local function read_lengths_first(key, set, first, last)
  local values, short, where = {}, {}, {}
  for k = first, last do
    local length = redis.pcall('HSTRLEN', key, set.names[k])
    if type(length) ~= 'number' then return nil end
    values[k - first + 1] = length
    if length <= set.longest[k] then
      short[#short + 1], where[#where + 1] = set.names[k], k - first + 1
    end
  end
  if #short > 0 then
    for i, value in ipairs(redis.call('HMGET', key, unpack(short))) do values[where[i]] = value end
  end
  return values
end

local function read(key, set)
  local all, bytes = {}, 0
  for first = 1, #set.names, PIECE do
    local last = math.min(first + PIECE - 1, #set.names)
    local values = (careful and read_lengths_first or read_piece)(key, set, first, last)
    if not values then return {}, 0 end
    for i, value in ipairs(values) do
      all[set.where[first + i - 1]] = value
      if type(value) == 'string' then bytes = bytes + #value end
    end
  end
  for j, name in pairs(set.lengths) do all[j] = redis.call('HSTRLEN', key, name) end
  return all, bytes
end

local all = {}
for i, key in ipairs(KEYS) do
  local values, bytes = read(key, sets[tonumber(ARGV[at + i - 1])])
  if i > 1 and bytes > room then break end
  room = room - bytes
  all[i] = values
end
return all
