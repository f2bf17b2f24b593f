-- names: returns a page of the names of a hash's properties, without their values. It changes nothing.
--
-- KEYS: the hash
-- ARGV: the cursor (0 to begin, then the cursor that the last call returned), the approximate number of names to
-- return, the approximate limit for the bytes of the names and values that the script reads, and the size up to which
-- the script returns all names of a hash at once
--
-- Returns { next cursor or 0 at the end, names }. All pages together contain each name at least once, unless the
-- property is deleted meanwhile.

local cursor, most, room = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local size = redis.pcall('HLEN', KEYS[1])
if type(size) == 'table' then return { '0', {} } end -- the key is not a hash
if cursor == '0' and size <= tonumber(ARGV[4]) then return { '0', redis.call('HKEYS', KEYS[1]) } end
local names = {}
repeat
  -- Scan one bucket at a time, because HSCAN also returns the values, which may be long.
  local page = redis.call('HSCAN', KEYS[1], cursor, 'COUNT', 1)
  cursor = page[1]
  for i = 1, #page[2], 2 do
    names[#names + 1] = page[2][i]
    room = room - #page[2][i] - #page[2][i + 1]
  end
until cursor == '0' or #names >= most or room <= 0
return { cursor, names }
