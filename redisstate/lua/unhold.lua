-- unhold: returns held tasks to the sets from which workers claim them (see places.lua). The tasks stay open, and keep
-- their times.
--
-- KEYS: open
-- ARGV: the prefix of the keys of tasks; then for each reason: the reason, the score in `held` that the server has
-- read, the time of the next check, the number of tasks, and the tasks, the number of stale members, and these members
--
-- A stale member is in the set of the reason, but its task is not held there. The script removes it.
-- Each task is: id, revision, the place that it enters or '', and a number of seconds or ''. With a number, the task
-- counts as returned until a worker claims it, and as returned that many seconds ago.
--
-- If a task is not held any more, or has another revision, the script leaves it where it is. Then there may be room for
-- other tasks, so the server looks at the reason again at once. It also does so if the score in `held` has changed: a
-- limit has room since the server read the score. No task then tries a source, because another server may have chosen
-- one. A reason without held tasks leaves `held`, unless it is a source that is still held.
--
-- Returns the number of tasks that were returned, and an error text or ''. If a set has a wrong type, its tasks stay
-- held, and the text names the set. If another key has a wrong type, the script writes nothing and returns the error
-- WRONGTYPE.

local open, tasks = KEYS[1], ARGV[1]
local prefix = string.sub(open, 1, -1 - #'open')
local returned, failing = prefix .. 'returned:', prefix .. 'failing'
local MOST_COUNT = 1000000000
cursor = 1
use_places(open)

local wrong = not_sorted(open) or not_sorted(held) or not_sorted(placed)
if wrong then return wrong end
local found, reasons, wrong_at = {}, {}, ''

-- Go reads an invalid revision as 0.
local function revision_of(s)
  if s and #s <= 10 and string.match(s, '^[1-9]%d*$') and tonumber(s) <= MOST_COUNT then return s end
  return '0'
end

local function is_held_for(reason, f) return f[1] == 'open' and f[2] and (split_place(f[2])) == reason end

local function is_as_read(r) return score_of(call('ZSCORE', held, r.reason) or '-1') == score_of(r.read) end

local function read_task(r)
  local t = { reason = r.reason, id = take(), revision = take(), to = take(), age = tonumber(take()) }
  local f = try('HMGET', tasks .. t.id, 'state', 'place', 'revision', 'round') -- an error if the key is not a hash
  r.again = true
  if not is_held_for(r.reason, f) or revision_of(f[3]) ~= t.revision then return end
  if string.find(t.to, '^trial;') and not is_as_read(r) then return end
  t.from, t.at, t.round = f[2], call('ZSCORE', placed, t.id), round_of(f[4])
  local bad = wrong_place(t.from) or t.to ~= '' and wrong_place(t.to)
  if bad then
    wrong_at, r.again = bad.err, r.was_again
    return
  end
  if not t.at then return end
  found[#found + 1], r.again = t, r.was_again
end

while cursor < #ARGV do
  local r = { reason = take(), read = take(), next = take() }
  reasons[#reasons + 1] = r
  for _ = 1, tonumber(take()) do
    r.was_again = r.again
    read_task(r)
  end
  r.stale = take_list(1)
end

-- From here on, the script writes.
local plain = {}
for _, t in ipairs(found) do
  leave_place(t.from, t.id)
  local at = text(number(t.at) or 0)
  if t.to == '' then
    call('HDEL', tasks .. t.id, 'place')
    put(plain, at, t.id)
  else
    call('HSET', tasks .. t.id, 'place', t.to)
    enter_place(t.to, at, t.id)
  end
  local tries = string.find(t.to, '^trial;') and string.match(t.reason, '^source=(.*)$')
  if tries then try('HSET', failing, tries .. ':trial', t.id .. ' ' .. t.round) end
  local key = t.age and string.match(t.reason, '^limit=(.*)$')
  if key then try('ZADD', returned .. key, text(now - t.age), t.id) end
end
bulk('ZADD', open, plain)
finish_places()
if #plain > 0 then wake(wakes .. 'open', #plain / 2) end

for _, r in ipairs(reasons) do
  local set = set_of(r.reason)
  for _, member in ipairs(r.stale) do
    local id = parse_member(member)
    local f, at = try('HMGET', tasks .. id, 'state', 'place'), try('ZSCORE', placed, id)
    local _, priority = split_place(f[2] or '')
    if not (is_held_for(r.reason, f) and at and member == member_of(priority, at, id)) then
      r.again = try('ZREM', set, member) == 1 or r.again -- other tasks may wait behind them
    end
  end
  if call('EXISTS', set) == 0 and try('HEXISTS', prefix .. 'paused', r.reason) ~= 1 then
    call('ZREM', held, r.reason)
    local key = string.match(r.reason, '^limit=(.*)$')
    if key then call('UNLINK', returned .. key) end
  elseif is_as_read(r) then
    call('ZADD', held, r.again and now_text or r.next, r.reason)
    if r.again then wake(wakes .. 'server', 1) end
  end
end
return { #found, wrong_at }
