-- transact: moves tasks from one state to another and opens new ones.
--
-- from-state  the one that each move names, in the round that it names
-- to-state    the one that each move names; new tasks: open
--
-- A call is a list of units. A unit is some moves and some new tasks: all of it happens, or
-- nothing. Units do not depend on each other. No task is named twice in a call. All that
-- decides is read before the first write.
--
-- KEYS  1 calls of this client   2 due   3 task_id   4… the lists   then the wake lists
-- ARGV  1 slot ('' = a repeat is known by its claim)   2 sequence number   3 prefix of task keys
--       4 prefix of group keys   5 who
--       n, n names of the lists in KEYS        (a list is named like its state)
--       n, n names of the lists whose wake list is the next in KEYS
--       n, n properties and values that all new tasks share
--       n units, each: n moves, n new tasks, the moves, the new tasks
--   move  id, from, round, claim, due, to, group, mend, score, look, note,
--         n, n properties and values, n, n properties and moments, n, n properties to remove
--   new   group, score, look, n, n properties and values
--   A moment is '' (now), '-' (never) or 'after,min,max' (now + after, within the bounds given).
--
-- Returns a line for each unit: '+' and the id of its first new task (they ascend by one), or
-- '-id round state': the first task that was not as its move said, and what was found.
-- Error 'TDFSTALE': a later call of the same slot was already answered.

local due, counter = KEYS[2], KEYS[3]
local slot, sequence, tasks, groups, who = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4], ARGV[5]
local cursor = 5

local function take()
  cursor = cursor + 1
  return ARGV[cursor]
end

local function skip(n)
  local first = cursor + 1
  cursor = cursor + n
  return first, cursor
end

local answer, stale = answered(slot, sequence)
if answer or stale then return answer or stale end

local list, code, names, wakes = {}, {}, {}, {}
for i = 1, tonumber(take()) do
  names[i] = take()
  list[names[i]], code[names[i]] = KEYS[3 + i], i
end
for i = 1, tonumber(take()) do wakes[i] = take() end
local shared_first, shared_last = skip(2 * tonumber(take()))

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

-- Reading and checking.

local function read_move()
  local m = {
    id = take(), from = take(), round = tonumber(take()), claim = take(), due = take(), to = take(),
    group = take(), mend = take() == '1', score = take(), look = take(), note = take(), at = now,
  }
  m.set, m.set_last = skip(2 * tonumber(take()))
  m.stamps, m.stamps_last = skip(2 * tonumber(take()))
  m.clear, m.clear_last = skip(tonumber(take()))
  m.key = tasks .. m.id
  return m
end

-- The round's own stamps never go backwards, whatever the clock does.
local function not_before(m, stamp)
  local t = stamp and tonumber(stamp)
  if t and t > m.at and t < 1e12 then m.at = t end
end

-- Whether the task is where the move starts. 'done': an execution that this very claim has
-- committed before. A claim's own result is also taken where somebody else's late one has
-- moved the task to executed without being this round's.
local function check(m)
  local of = m.round .. ':'
  local f = redis.call('HMGET', m.key, 'state', 'round', 'log',
    of .. m.from, of .. 'started', of .. 'claim', of .. 'executed')
  m.log = f[3] or ''
  local state = f[1] or ''
  local round = string.match(f[2] or '', '^%d+$') and tonumber(f[2]) or 0
  if m.claim ~= '' then
    if f[6] == m.claim and f[7] and m.to == 'executed' then return 'done' end
    if f[6] == m.claim and not f[7] and state == 'executed' then
      state, m.stray = m.from, 'executed'
    elseif f[6] ~= m.claim then
      return string.format('-%s %d %s', m.id, round, state)
    end
  end
  local scheduled = m.due == '' or score_of(redis.call('ZSCORE', due, m.id) or '-1') == tonumber(m.due)
  if state ~= m.from or round ~= m.round or not scheduled then
    return string.format('-%s %d %s', m.id, round, state)
  end
  not_before(m, f[4])
  not_before(m, f[5])
  return 'ok'
end

local function read_unit()
  local u = { moves = {}, new = {} }
  local moves, new = tonumber(take()), tonumber(take())
  for _ = 1, moves do
    local m = read_move()
    local found = check(m)
    if found == 'ok' then
      u.moves[#u.moves + 1] = m
    elseif found ~= 'done' and not u.refused then
      u.refused = found
    end
  end
  for i = 1, new do
    local n = { group = take(), score = take(), look = take() }
    n.set, n.set_last = skip(2 * tonumber(take()))
    u.new[i] = n
  end
  return u
end

local units, opening = {}, 0
for i = 1, tonumber(take()) do
  units[i] = read_unit()
  if not units[i].refused then opening = opening + #units[i].new end
end

-- Ids are free ones in a row, even if somebody lost the counter.
local first = tonumber(redis.call('GET', counter) or 0) + 1
if opening > 0 then
  local free = 0
  while free < opening do
    if redis.call('EXISTS', tasks .. string.format('%.0f', first + free)) == 1 then
      first, free = first + free + 1, 0
    else
      free = free + 1
    end
  end
end

-- Writing. Sorted sets are written in bulk, at the end.

local remove, add, look_at, forget, arrived = {}, {}, {}, {}, {}

local function put(all, key, a, b)
  local of = all[key]
  if not of then
    of = {}
    all[key] = of
  end
  of[#of + 1] = a
  if b then of[#of + 1] = b end
end

local function flush(command, all)
  for key, of in pairs(all) do bulk(command, key, of) end
end

local function enter(state, id, score, look, group)
  put(add, list[state], text(score), id)
  if look then put(look_at, due, text(look), id) else put(forget, due, id) end
  if group ~= '' then
    put(add, groups .. group, place(code[state], id), id)
  end
  arrived[state] = (arrived[state] or 0) + 1
end

local function leave(m)
  if m.mend then
    for i = 1, #names do
      if names[i] ~= m.to then put(remove, list[names[i]], m.id) end
    end
  else
    put(remove, list[m.from], m.id)
    if m.stray then put(remove, list[m.stray], m.id) end
  end
end

local function apply(m)
  local look = moment(m.look, m.at)
  if m.to == '' and not m.mend then
    if look then put(look_at, due, text(look), m.id) else put(forget, due, m.id) end
    return
  end
  leave(m)
  if m.to == '' then
    put(forget, due, m.id)
    return
  end
  local h = { m.key, 'log', logged(m.log, m.at, who, m.note) }
  for i = m.set, m.set_last do h[#h + 1] = ARGV[i] end
  for i = m.stamps, m.stamps_last, 2 do
    h[#h + 1] = ARGV[i]
    h[#h + 1] = text(moment(ARGV[i + 1], m.at))
  end
  redis.call('HSET', unpack(h))
  for i = m.clear, m.clear_last do redis.call('HDEL', m.key, ARGV[i]) end
  enter(m.to, m.id, moment(m.score, m.at), look, m.group)
end

local opened = 0
local function open(n)
  local id = string.format('%.0f', first + opened)
  local later = opened / 1000000 -- first in, first out
  local at = now + later
  local score, least = moment(n.score, now)
  score = score + later
  opened = opened + 1
  local h = { tasks .. id, 'id', id, '0:open', text(at), 'log', logged('', at, who, 'open') }
  for i = shared_first, shared_last do h[#h + 1] = ARGV[i] end
  for i = n.set, n.set_last do h[#h + 1] = ARGV[i] end
  if score ~= at and score ~= least then
    h[#h + 1] = 'ready'
    h[#h + 1] = text(score)
  end
  redis.call('HSET', unpack(h))
  enter('open', id, score, moment(n.look, at), n.group)
end

local lines = {}
for i, u in ipairs(units) do
  if u.refused then
    lines[i] = u.refused
  else
    lines[i] = '+' .. string.format('%.0f', first + opened)
    for _, m in ipairs(u.moves) do apply(m) end
    for _, n in ipairs(u.new) do open(n) end
  end
end
if opened > 0 then redis.call('SET', counter, string.format('%.0f', first + opened - 1)) end
flush('ZREM', remove)
flush('ZREM', forget)
flush('ZADD', add)
flush('ZADD', look_at)

for i, state in ipairs(wakes) do
  if arrived[state] then wake(KEYS[3 + #names + i], arrived[state]) end
end

answer = table.concat(lines, '\n')
remember(slot, sequence, answer)
return answer
