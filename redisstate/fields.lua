-- fields: properties of tasks, read at one moment, without those that are too long. It changes nothing.
--
-- KEYS  the tasks' hashes
-- ARGV  how long a value may be, in bytes
--       the same for names that have a colon: properties of a round, of which a task has many
--       how many bytes of values to return at most; the first task is always returned
--       how many sets of names follow; each is the number of names, and the names
--       for each key which set it is about, from 1
--
-- Returns, for each of the first keys, as many as there is room for, the values in the order of the names: nil for one
-- that is not there, and the length, a number, for one that is too long. A key that is no hash has no values.

local most, mostOfRound, room = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local at, sets = 5, {}
for i = 1, tonumber(ARGV[4]) do
  local n = tonumber(ARGV[at])
  sets[i] = { unpack(ARGV, at + 1, at + n) }
  at = at + n + 1
end

local function read(key, names)
  local values, short, where, bytes = {}, {}, {}, 0
  for i, name in ipairs(names) do
    local length = redis.pcall('HSTRLEN', key, name)
    if type(length) ~= 'number' then return {}, 0 end
    values[i] = length
    if length <= (string.find(name, ':', 1, true) and mostOfRound or most) then
      short[#short + 1], where[#where + 1] = name, i
      bytes = bytes + length
    end
  end
  if #short > 0 and bytes <= room then
    for i, value in ipairs(redis.call('HMGET', key, unpack(short))) do values[where[i]] = value end
  end
  return values, bytes
end

local all = {}
for i, key in ipairs(KEYS) do
  local limit = room
  if i == 1 then room = math.huge end
  local values, bytes = read(key, sets[tonumber(ARGV[at + i - 1])])
  if i > 1 and bytes > limit then break end
  room = limit - bytes
  all[i] = values
end
return all
