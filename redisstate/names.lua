-- names: returns some names of a hash's properties, however long their values are. It changes nothing.
--
-- KEYS  1 the hash
-- ARGV  1 the cursor: 0 to begin, then the cursor that the last call returned
--       2 about how many names to return
--       3 about how many bytes of names and values to pass
--
-- Returns the next cursor, 0 at the end, and the names. It returns each property at least once, unless the property
-- is deleted.

local cursor, most, room = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local names = {}
repeat
  -- Scan one bucket at a time, because Redis also copies the values.
  local page = redis.call('HSCAN', KEYS[1], cursor, 'COUNT', 1)
  cursor = page[1]
  for i = 1, #page[2], 2 do
    names[#names + 1] = page[2][i]
    room = room - #page[2][i] - #page[2][i + 1]
  end
until cursor == '0' or #names >= most or room <= 0
return { cursor, names }
