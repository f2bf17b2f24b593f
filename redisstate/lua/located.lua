-- located: says for each open task whether claims, or the server, find it in its place, all at one moment. Otherwise, a
-- task that enters and leaves its place again and again, because of its limit, may look out of place whenever it is
-- read. It changes nothing.
--
-- KEYS: open
-- ARGV: the prefix of the keys of tasks, and for each task its id, its place, and '1' if the server must link it, or ''
--
-- Returns for each task 1 if it is in its place, or has moved since it was read, and otherwise 0.

local tasks = ARGV[1]
cursor = 1
use_places(KEYS[1])

local function has(key, member) return type(try('ZSCORE', key, member)) == 'string' end

local function in_place(id, place, links)
  local f = try('HMGET', tasks .. id, 'state', 'place') -- an error reply if the key is not a hash
  local at = try('ZSCORE', placed, id)
  if f[1] and f[1] ~= 'open' or f[2] ~= place then return true end
  local p = split_place(place)
  if links == '1' and not has(unlinked, id) or type(at) ~= 'string' then return false end
  local member = member_of(p.priority, at, id)
  if has(later, id) then return true end
  if not has(p.key, member) or p.of_group and not has(p.of_group, member) then return false end
  if not p.claimed then return not p.held or has(held, p.name) end
  local head = try('HGET', first_of, p.name)
  return type(head) == 'string' and has(heads .. queue_of(p.name), head) and string.sub(head, 1, 29) <= member
end

local found = {}
while cursor < #ARGV do found[#found + 1] = in_place(take(), take(), take()) and 1 or 0 end
return found
