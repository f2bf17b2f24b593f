-- names: the names of a hash's properties, some at a time, however long its values are. It changes nothing.
--
-- KEYS  the hash
-- ARGV  the cursor: 0 to begin, then the one returned before
--       how many names to return, about
--       how many bytes of names and values to walk over, about
--
-- Returns the next cursor, 0 at the end, and the names. A property that stays there is named once at least.

local cursor, most, room = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local names = {}
repeat
  -- One bucket at a time: Redis copies the values, too.
  local page = redis.call('HSCAN', KEYS[1], cursor, 'COUNT', 1)
  cursor = page[1]
  for i = 1, #page[2], 2 do
    names[#names + 1] = page[2][i]
    room = room - #page[2][i] - #page[2][i + 1]
  end
until cursor == '0' or #names >= most or room <= 0
return { cursor, names }
