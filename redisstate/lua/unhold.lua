-- unhold: moves tasks that have become due to the sets from which workers claim them, and returns held tasks to the
-- places from which claims have taken them, as far as their reasons allow it now (docs/lifecycle.md, "Limits per key",
-- "Pausing" and "Held programs"). The tasks keep their times and their order. The server calls it when a check in the
-- set `held`, or a task in the set `later`, is due.
--
-- KEYS: open, due, paused, failing
-- ARGV: the prefix of the keys of tasks
--
-- Returns the number of returned tasks, and '1' if more is due, or ''. If the set of a requirement has a wrong type,
-- its tasks stay held. If another key has a wrong type, the script returns no held task, and the error WRONGTYPE.

local open, due, paused, failing = unpack(KEYS)
local tasks, prefix = ARGV[1], string.sub(open, 1, -1 - #'open')
local MOST_DUE, MOST_REASONS, MOST_TASKS, MOST_CHECKED = 1000, 50, 500, 32 -- bounds of the work of a call
local RECHECK, LAST_CHECK, PATIENCE = 10, 11, 10 -- seconds
local LONGEST_PAUSE, LONGEST_HOLD = 60, 600 -- seconds
use_places(open)
limiting.use(due)
local n_due = promote(MOST_DUE, tasks)

local wrong = not_sorted(open) or not_sorted(held) or not_sorted(placed) or not_hash(paused) or not_hash(failing)
if wrong then return wrong end
local pauses, n_returned = call('EXISTS', paused) == 1, 0
local further = pauses and MOST_TASKS or 20 -- how many tasks the script reads beside those that use room
local plain, counted = {}, {} -- tasks that return to the list `open`, and tasks that use room

local function is_paused(name) return pauses and call('HEXISTS', paused, name) == 1 end

-- Checks the tasks of a limit whose last check was the longest time ago, and removes those that no longer run.
local function remove_idle(set, key)
  for _, id in ipairs(try('ZRANGE', set, 0, MOST_CHECKED - 1)) do
    local f = try('HMGET', tasks .. id, 'state', 'limit_key') -- an error reply if the key is not a hash
    set_score(set, (f[1] == 'running' or f[1] == 'executed') and f[2] == key and now_text, id)
  end
end

local function room_of_limit(key)
  local room, _, _, next = limiting.room(key)
  if room <= 0 and not next then
    remove_idle(limiting.running .. key, key)
    room, _, _, next = limiting.room(key)
  end
  return room, math.min(next or INF, now + RECHECK)
end

-- A held source is tried a second after the hold began, then after twice as long each time, up to a minute. After ten
-- minutes without a failure, the source is held no longer, because its tasks may have gone. So it is after a leap of
-- the clock.
local function room_of_source(sha)
  local entry = call('HGET', failing, sha) or ''
  local since, last, tried = string.match(entry, '^(%S+) (%S+) %d+ ?(%S*)')
  since, last = tonumber(since or ''), tonumber(last or '')
  if not (since and last) or math.abs(now - last) > LONGEST_HOLD then
    sources.start(prefix, sha)
    return INF, now + RECHECK
  end
  tried = tonumber(tried) or since
  local trial = tried + math.min(math.max(tried - since, 1), LONGEST_PAUSE)
  if trial > now then return 0, math.min(trial, now + RECHECK) end
  call('HSET', failing, sha, (string.gsub(entry, '^(%S+ %S+ %d+)[^\n]*', '%1 ' .. now_text)))
  call('UNLINK', prefix .. 'returned:source=' .. sha) -- the task of the last trial, if no claim has met it
  return 1, now + math.min(now - since, RECHECK)
end

-- Returns how many tasks may start as far as a reason is concerned, and the time of the next check.
local function room_of(reason)
  local kind, name = string.match(reason, '^(%l+)=(.*)$')
  if is_paused('namespace') then return 0, now + 1 end
  if kind == 'limit' then return room_of_limit(name) end
  if kind == 'paused' and is_paused('group=' .. name) then return 0, now + RECHECK end
  if kind == 'source' and is_paused(reason) then return room_of_source(name) end
  return INF, now + RECHECK
end

-- Returns how many tasks may return. Those that have returned before use the room until a claim meets them. But after
-- PATIENCE seconds, their requirements may have no workers. Then they count no longer, and twice as many tasks return,
-- so that even a million of them do not delay others for long. A claim holds the tasks again that are too many.
local function number_of(room, set)
  if room <= 0 or room >= INF then return room end
  try('ZREMRANGEBYSCORE', set, text(now + 1), '+inf') -- the clock was set back
  local late, there = try('ZREMRANGEBYSCORE', set, '-inf', text(now - PATIENCE)), try('ZCARD', set)
  if type(there) ~= 'number' then return 0 end
  return math.max(0, room - there) + 2 * late
end

-- Returns the task of a member to its place, or removes the member if it is no held task.
local function return_task(reason, member, set)
  local id = parse_member(member)
  local f, at = try('HMGET', tasks .. id, 'state', 'place', 'group', 'queue'), try('ZSCORE', placed, id)
  local p = split_place(f[2] or '')
  local home = p.home
  if f[1] ~= 'open' or p.name ~= reason or not (home and at) or member ~= member_of(p.priority, at, id) then
    return call('ZREM', set, member)
  end
  if home ~= '' and wrong_place(home) then return 0 end
  leave_place(f[2], id)
  at, n_returned = text(number(at) or 0), n_returned + 1
  if home == '' then
    call('HDEL', tasks .. id, 'place')
    put(plain, at, id)
  else
    call('HSET', tasks .. id, 'place', home)
    enter_place(home, at, id)
  end
  -- If something else is paused, too, the task uses no room.
  local waits = is_paused('group=' .. (f[3] or '')) or is_paused('queue=' .. (f[4] or DEFAULT))
  if not waits then put(counted, now_text, id) end
  return 1
end

-- Returns tasks that are held for a reason. Returns the time of the next check.
local function check(reason)
  local room, next = room_of(reason)
  local set, returned, changed = held .. ':' .. reason, prefix .. 'returned:' .. reason, 0
  local n = number_of(room, returned)
  local most = math.min(n, MOST_TASKS)
  local page, ended = most > 0 and try('ZRANGE', set, 0, most + further - 1) or {}, false
  counted = {}
  for i, member in ipairs(page) do
    ended = #counted == 2 * most or i % 16 == 0 and spent(1)
    if ended then break end
    changed = changed + return_task(reason, member, set)
  end
  if room < INF and counted[1] then
    bulk('ZADD', returned, counted, try)
    try('EXPIRE', returned, LONGEST_HOLD)
  end
  return changed > 0 and #counted < 2 * n and (ended or #page == most + further) and now or next
end

local reasons = call('ZRANGEBYSCORE', held, '-inf', now_text, 'LIMIT', 0, MOST_REASONS)
if not reasons[1] then -- after the clock was set back, checks may lie too far in the future
  reasons = call('ZRANGEBYSCORE', held, text(now + LAST_CHECK), '+inf', 'LIMIT', 0, MOST_REASONS)
end
local checks, more = {}, n_due == MOST_DUE or #reasons == MOST_REASONS
for i, reason in ipairs(reasons) do
  if i > 1 and (n_returned >= MOST_TASKS or spent(1)) then
    more = true
    break
  end
  checks[i] = check(reason)
end
bulk('ZADD', open, plain)
finish_places()
if plain[1] then wake(wakes .. 'open', #plain / 2) end
for i, next in ipairs(checks) do
  local reason = reasons[i]
  if call('EXISTS', held .. ':' .. reason) == 0 and not is_paused(reason) then
    call('ZREM', held, reason)
    call('UNLINK', prefix .. 'returned:' .. reason)
  else
    more = more or next == now
    call('ZADD', held, text(next), reason)
  end
end
return { n_returned, more and '1' or '' }
