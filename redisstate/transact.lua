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
--       n, n names and codes of the lists in KEYS: those that moves come from or go to, or all
--       if one mends. A list is named like its state; the code is its place in a group's index
--       n, n names of the lists whose wake list is the next in KEYS
--       n, n shapes: what moves have in common, sent once
--       n, n properties and values that all new tasks have in common
--       n units, each: n moves, n new tasks, the moves, the new tasks
--   shape  from, round, to, mend, score, look, note, n, n properties and values,
--          n, n properties and moments, n, n properties to remove, n, n properties of its own
--   move   shape, id, claim, due, group, the values of its own properties
--   new    group, score, look, n, n properties and values
--   A moment is '' (now), '-' (never) or 'after,min,max' (now + after, within the bounds given).
--
-- Returns a line for each unit: '+' and the id of its first new task (they ascend by one), or
-- '-id round state': the first task that was not as its move said, and what was found.
-- Error 'TDFSTALE': a later call of the same slot was already answered.

local call, ARGV, KEYS = redis.call, ARGV, KEYS -- locals are faster, and this is the hot path
local due, counter = KEYS[2], KEYS[3]
local slot, sequence, tasks, groups, who = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4], ARGV[5]
local cursor = 5

local answer, stale = answered(slot, sequence)
if answer or stale then return answer or stale end

local function take()
  cursor = cursor + 1
  return ARGV[cursor]
end

-- Takes a count and so many times `each` arguments.
local function take_list(each)
  local taken = {}
  for i = 1, each * tonumber(take()) do taken[i] = take() end
  return taken
end

local list, code, lists = {}, {}, tonumber(take())
for i = 1, lists do
  local name = take()
  list[name], code[name] = KEYS[3 + i], tonumber(take())
end
local wakes = take_list(1)
local now_text = text(now)

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

-- What will be written to sorted sets, by key: it is written in bulk, at the end.
local remove, add, arrived = {}, {}, {}

local function into(all, key)
  all[key] = all[key] or {}
  return all[key]
end

local function put(of, score, id)
  local n = #of
  of[n + 1], of[n + 2] = score, id
end

local function drop(of, id) of[#of + 1] = id end

local looked_at, forgotten = into(add, due), into(remove, due)

-- Reading: the whole call, then all that decides about it.

-- What a shape's moves write is put together once, in `write`; a move fills in its key, log
-- and own values. So is what is read to check one, in `read`.
local function stamp(s, at)
  s.at, s.at_text = at, text(at)
  s.score_text, s.look_text = moment_text(s.score, at), moment_text(s.look, at)
  for i = 1, #s.stamps, 2 do s.write[s.stamped + i] = moment_text(s.stamps[i + 1], at) end
end

local function read_shape()
  local s = {
    from = take(), round = take(), to = take(), mend = take() == '1', score = take(), look = take(), note = take(),
    set = take_list(2), stamps = take_list(2), clear = take_list(1), own = take_list(1),
  }
  local of = s.round .. ':'
  s.read = { '', 'state', 'round', 'log', of .. s.from }
  if s.from == 'running' then
    for _, name in ipairs({ 'claim', 'executed', 'started' }) do s.read[#s.read + 1] = of .. name end
  end
  s.write = { '', 'log', '', unpack(s.set) }
  s.stamped = #s.write + 1
  for i = 1, #s.stamps, 2 do s.write[s.stamped + i - 1], s.write[s.stamped + i] = s.stamps[i], '' end
  s.owned = #s.write
  for i, name in ipairs(s.own) do s.write[s.owned + 2 * i - 1], s.write[s.owned + 2 * i] = name, '' end
  if s.to ~= '' then
    s.entered = into(add, list[s.to])
    if not s.mend then s.left = into(remove, list[s.from]) end
  end
  stamp(s, now)
  return s
end

local shapes = {}
for i = 1, tonumber(take()) do shapes[i] = read_shape() end
local shared = take_list(2)

local fenced = {} -- ids whose place in due must not have changed

local function read_move()
  local shape, id, scheduled = shapes[tonumber(ARGV[cursor + 1])], ARGV[cursor + 2], ARGV[cursor + 4]
  local m = {
    shape = shape, id = id, key = tasks .. id, claim = ARGV[cursor + 3], due = scheduled,
    group = ARGV[cursor + 5], own = cursor + 5, at = now, log = false, stray = false,
  }
  cursor = m.own + #shape.own
  if scheduled ~= '' then fenced[#fenced + 1] = id end
  return m
end

local function read_unit()
  local u = { moves = {}, new = {}, refused = false }
  local moves, new = tonumber(take()), tonumber(take())
  for i = 1, moves do u.moves[i] = read_move() end
  for i = 1, new do u.new[i] = { group = take(), score = take(), look = take(), set = take_list(2) } end
  return u
end

local units = {}
for i = 1, tonumber(take()) do units[i] = read_unit() end

local scheduled = {}
for i = 1, #fenced, 500 do
  local scores = call('ZMSCORE', due, unpack(fenced, i, math.min(i + 499, #fenced)))
  for j, score in ipairs(scores) do scheduled[fenced[i + j - 1]] = score or '-1' end
end

-- The round's own stamps never go backwards, whatever the clock does.
local function not_before(m, stamped)
  local t = stamped and tonumber(stamped)
  if t and t > m.at and t < 1e12 then m.at = t end
end

local function found(m, state, round) return string.format('-%s %d %s', m.id, round, state) end

-- Whether the task is where the move starts: nil, or what is there instead. 'done': an
-- execution that this very claim has committed before. A claim's own result is also taken
-- where somebody else's late one has moved the task to executed without being this round's.
local function check(m)
  local s = m.shape
  s.read[1] = m.key
  local f = call('HMGET', unpack(s.read))
  local state, round, claim, executed = f[1] or '', f[2] or '0', f[5], f[6]
  m.log = f[3]
  local mine = m.claim ~= '' and claim == m.claim
  if mine and executed and s.to == 'executed' then return 'done' end
  if round ~= s.round and not (s.round == '0' and not string.match(round, '^%d+$')) then
    return found(m, state, tonumber(string.match(round, '^%d+$') or 0))
  end
  if m.claim ~= '' then
    if not mine then return found(m, state, s.round) end
    if not executed and state == 'executed' then
      state, m.stray = s.from, 'executed'
    end
  end
  if state ~= s.from then return found(m, state, s.round) end
  if m.due ~= '' and score_of(scheduled[m.id]) ~= score_of(m.due) then return found(m, state, s.round) end
  not_before(m, f[4])
  not_before(m, f[7])
end

-- A unit that is refused names what was found first; what was done before needs no repeat.
local function check_unit(u)
  local kept = {}
  for _, m in ipairs(u.moves) do
    local wrong = check(m)
    if not wrong then
      kept[#kept + 1] = m
    elseif wrong ~= 'done' then
      u.refused = u.refused or wrong
    end
  end
  u.moves = kept
end

local opening = 0
for _, u in ipairs(units) do
  check_unit(u)
  if not u.refused then opening = opening + #u.new end
end

-- Ids are free ones in a row, even if somebody lost the counter.
local function taken(first, n)
  local keys = {}
  for i = 1, n do keys[i] = tasks .. string.format('%.0f', first + i - 1) end
  local count = 0
  for i = 1, n, 500 do count = count + call('EXISTS', unpack(keys, i, math.min(i + 499, n))) end
  return count > 0
end

local first = 1
if opening > 0 then
  first = first + tonumber(call('GET', counter) or 0)
  while taken(first, opening) do first = first + 1 end
end

-- Writing.

local function look_again(id, look)
  if look then put(looked_at, look, id) else drop(forgotten, id) end
end

local function index(state, id, group)
  if group ~= '' then put(into(add, groups .. group), place(code[state], id), id) end
  arrived[state] = (arrived[state] or 0) + 1
end

local function leave(m)
  local s = m.shape
  if s.left then
    drop(s.left, m.id)
    if m.stray then drop(into(remove, list[m.stray]), m.id) end
    return
  end
  for name, key in pairs(list) do -- a repair: from wherever it is
    if name ~= s.to then drop(into(remove, key), m.id) end
  end
end

local function apply(m)
  local s = m.shape
  if m.at ~= s.at then stamp(s, m.at) end
  if s.to == '' and not s.mend then return look_again(m.id, s.look_text) end
  leave(m)
  if s.to == '' then return look_again(m.id, nil) end
  local write = s.write
  write[1], write[3] = m.key, logged(m.log, s.at_text, who, s.note)
  for i = 1, #s.own do write[s.owned + 2 * i] = ARGV[m.own + i] end
  call('HSET', unpack(write))
  if #s.clear > 0 then call('HDEL', m.key, unpack(s.clear)) end
  put(s.entered, s.score_text, m.id)
  index(s.to, m.id, m.group)
  look_again(m.id, s.look_text)
end

local opened = 0
local function open(new)
  local id = string.format('%.0f', first + opened)
  local later = opened / 1000000 -- first in, first out
  local at = now + later
  local score, least = moment(new.score, now)
  score = score + later
  opened = opened + 1
  local at_text = text(at)
  local score_text = score == at and at_text or text(score)
  local h = { tasks .. id, unpack(shared) } -- what is looked up most comes first
  local n = #h
  for i = 1, #new.set do h[n + i] = new.set[i] end
  n = #h
  h[n + 1], h[n + 2], h[n + 3], h[n + 4] = 'log', logged('', at_text, who, 'open'), '0:open', at_text
  h[n + 5], h[n + 6] = 'id', id
  if score ~= at and score ~= least then
    h[n + 7], h[n + 8] = 'ready', score_text
  end
  call('HSET', unpack(h))
  put(into(add, list.open), score_text, id)
  index('open', id, new.group)
  if new.look ~= '-' then look_again(id, moment_text(new.look, at)) end
end

local lines = {}
for i, u in ipairs(units) do
  if u.refused then
    lines[i] = u.refused
  else
    lines[i] = '+' .. string.format('%.0f', first + opened)
    for _, m in ipairs(u.moves) do apply(m) end
    for _, new in ipairs(u.new) do open(new) end
  end
end
if opened > 0 then call('SET', counter, string.format('%.0f', first + opened - 1)) end
for key, of in pairs(remove) do bulk('ZREM', key, of) end
for key, of in pairs(add) do bulk('ZADD', key, of) end

for i, state in ipairs(wakes) do
  if arrived[state] then wake(KEYS[3 + lists + i], arrived[state]) end
end

answer = table.concat(lines, '\n')
remember(slot, sequence, answer)
return answer
