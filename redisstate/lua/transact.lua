-- transact: moves tasks from one state to another and opens new ones.
--
-- - from-state: for each move, the state and the round that it requires
-- - to-state: for each move, the state to which it leads, or none if it removes the task; open for new tasks
--
-- A call is a list of units. A unit consists of moves and new tasks that happen together or not at all. Units do not
-- depend on each other. No task occurs twice in a call. Before its first write, the script reads everything that its
-- decisions need. If the call takes too long, the script leaves out the last units, but never the first.
--
-- KEYS:
--  1. calls of this client
--  2. due
--  3. task_id
--  4. unique
--  5. groups: the marks of groups
--  6. pipelines: the records of the stages of pipelines
-- - the lists
-- - the wake lists
-- - if the number of tasks has a limit: all lists
--
-- ARGV:
--  1. call slot, or '' if the claim identifies a repeated call
--  2. sequence number
--  3. prefix of task keys
--  4. prefix of group keys
--  5. prefix of the keys of updates
--  6. prefix of the keys of followers
--  7. name of the user or component that makes the call, for the logs of the tasks
--  8. the largest number of tasks, or ''
-- - the number of states in which a task with unique_until=finished holds its unique key, and these states
-- - the same for unique_until=archived
-- - the number of states in which a task in the list `archived` counts as archived, and these states; none if no move
--   leaves such a state
-- - the number of codes of the states in which a task is not finished, and these codes
-- - the number of lists in KEYS, and the name and the code of each
-- - the number of wake lists in KEYS, and the name of the list to which each belongs
-- - the number of shapes, and the shapes: the parts that several moves have in common
-- - the number of properties that all new tasks have in common, and these properties with their values
-- - the number of units, and the units
--
-- The lists are those that moves leave or enter. If a move is a repair, they are all lists. The name of a list is its
-- state. The code of a list is the number of this state in a group's index.
--
-- Each unit is:
-- - number of moves
-- - number of new tasks
-- - the group that must not have tasks yet, or ''
-- - the group that must be closed and have only finished tasks, or ''; the unit changes its mark to `decided`
-- - two flags, or '': 'r' if new tasks wait for other new tasks of the unit, and 'c' if the unit must not exceed the
--   largest number of tasks
-- - the stage whose record the unit changes, or ''. If there is one, these arguments follow:
--   - the record that the stage must have, or '' for none
--   - its new record
--   - the key of stored definitions, or ''
--   - the number of chunks that these definitions must have; they are kept from now on. Or a minus and the chunk that
--     is removed
-- - the moves
-- - the new tasks
--
-- Each shape is:
-- - from
-- - round
-- - the revision that the task must have, or '' for any revision
-- - to, or '' if the task stays in its list, or '-' if the move removes the task, or '=' if the move changes nothing
--   and is only a guard: the unit requires that the task has the state, the round and the revision. If the task stays
--   and there is no note, the move only changes its due time.
-- - '1' for a repair
-- - '1' if each move has a unique key
-- - '1' if each move has a limit key
-- - '1' if the task's updates are removed, and its hash is made compact
-- - 'ends' if the move ends the task: no server reopens it; 'spoils' if it removes the task or its outputs; else ''
-- - score
-- - due time
-- - note for the log
-- - the number of properties to write, and these properties with their values
-- - the number of properties whose value is a time, and for each its name and its moment
-- - the number of properties to remove, and these properties
-- - the number of the moves' own properties, and their names
--
-- Each move is: number of its shape, id, claim, fence on the score in due, group, its unique key and its limit key if
-- the shape says so, the values of its own properties. A task that is reopened takes its unique key, and a task that is
-- removed gives it back.
--
-- Each new task is: group, place or '' (see places.lua), score, due time, its unique key or '', the number of its
-- properties, and these properties with their values.
--
-- Score and due time are moments. A moment is '' (now), '-' (never) or 'after,min,max' (now + after, but not before
-- min
-- and not after max).
--
-- Returns a line for each unit:
-- - '+' and the id of its first new task; the ids of the other new tasks follow in ascending order. If another task
--   holds the unique key of the i-th new task, the new task was not opened, and the line also has ' i=id' with the id
--   of the other task.
-- - '~': there was no time for the unit; the client sends it again
-- - all reasons why the unit was refused, with a tab between two of them:
--   - '*id other': the task cannot be reopened, because the other task holds its unique key
--   - '-id round state': the task is not in the state that its move requires; these are its true round and state. If
--     the move requires a revision, a comma and the true revision follow the round.
--   - '=': the group that must not have tasks yet has tasks
--   - '#mark group': no task can be opened in the group, because it has this mark
--   - '%mark group': the group cannot be decided: its mark is not `closed`, or some of its tasks are not finished
--   - '@record': the stage has another record than the required one; this is its true record
--   - '?': the stored definitions do not exist, or lack chunks
--   - '^tasks limit': there are this many tasks, and the unit would exceed the limit
--   - '&reason': nobody knows yet whether unfinished tasks need a task that would be removed; the reason says why
--   - '!reason': Redis cannot carry out the unit, for the given reason
--
-- If the call is impossible, the script writes nothing and returns one of these errors:
-- - 'TDFSTALE': a later call of the same call slot was already answered
-- - 'TDFIDS': no ids are left
-- - 'WRONGTYPE': a key of the namespace has another type

local call = redis.call -- access to a local is faster
local due, counter, unique, marks = KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local FIRST_LIST = 7
local slot, sequence, tasks, groups = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
local updates, follows, who, most = ARGV[5], ARGV[6], ARGV[7], ARGV[8]
local REMOVED, UNCHANGED = '-', '='
cursor = 8

local answer, stale = answered(slot, sequence)
if answer or stale then return answer or stale end

local holding, archiving = take_holding(), take_set()
deciding.use(groups, marks, KEYS[6], take_list(1))
local keys_refused = next(holding.finished) and no_keys(unique)
local list, code, lists = {}, {}, tonumber(take())
for i = 1, lists do
  local name = take()
  list[name], code[name] = KEYS[FIRST_LIST + i - 1], tonumber(take())
end
local waking = take_list(1)
if list.open then use_places(list.open) end
use_endings(due)
limiting.use(due)
local wrong = not_sorted(due)
for _, key in pairs(list) do wrong = wrong or not_sorted(key) end
if wrong then return wrong end

-- Changes of sorted sets, by key. The script writes them together at the end.
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

-- The first part of the script reads the whole call, and then everything that the decisions need.

-- The field `write` holds the arguments of HSET that all moves of a shape have in common. Each move adds its key, log
-- and own values. The field `read` holds the arguments of HMGET, and each move adds its key.
local function stamp(s, at)
  s.at, s.at_text = at, text(at)
  s.score_text, s.look_text = moment_text(s.score, at) or 'inf', moment_text(s.look, at)
  for i = 1, #s.stamps, 2 do s.write[s.stamped + i] = moment_text(s.stamps[i + 1], at) end
end

local function read_shape()
  local s = {
    from = take(), round = take(), revision = take(), to = take(), repair = take() == '1', unique = take() == '1',
    limit = take() == '1', updates = take() == '1', links = take(), score = take(), look = take(), note = take(),
    set = take_list(2), stamps = take_list(2), clear = take_list(1), own = take_list(1),
  }
  local of = s.round .. ':'
  s.read = { '', 'state', 'round', 'log', of .. s.from, s.from == s.to and 'revision' or of .. 'claim' }
  if s.from == 'running' then
    for _, name in ipairs({ 'executed', 'started' }) do s.read[#s.read + 1] = of .. name end
  end
  if s.revision ~= '' then s.read[#s.read + 1], s.revision_at = 'revision', #s.read end
  if list.open and (s.from == 'open' or s.to == 'open' or s.repair) then
    s.read[#s.read + 1] = 'place'
    s.place = #s.read - 1
  end
  if s.links ~= '' then
    s.read[#s.read + 1], s.links_at = s.links == 'ends' and 'links' or 'dependents', #s.read
    if s.to == REMOVED then s.read[#s.read + 1] = 'endings' end
  end
  s.write = { '', 'log', '', unpack(s.set) }
  s.stamped = #s.write + 1
  for i = 1, #s.stamps, 2 do s.write[s.stamped + i - 1], s.write[s.stamped + i] = s.stamps[i], '' end
  s.owned = #s.write
  for i, name in ipairs(s.own) do s.write[s.owned + 2 * i - 1], s.write[s.owned + 2 * i] = name, '' end
  if s.to ~= '' and s.to ~= UNCHANGED then
    if s.to ~= REMOVED then s.entered = into(add, list[s.to]) end
    if not s.repair then s.left = into(remove, list[s.from]) end
  end
  stamp(s, now)
  return s
end

local shapes = {}
for i = 1, tonumber(take()) do shapes[i] = read_shape() end
local shared = take_list(2)

-- A move is an array with these indexes, because a call may have a thousand moves and arrays are faster.
local SHAPE, ID, KEY, CLAIM, DUE, GROUP, OWN, AT, LOG, STRAY, SCHEDULED = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
local UNIQUE, LEAVES, ENTERS, LIMIT, LINKED, ARCHIVED = 12, 13, 14, 15, 16, 17
local moves, new_tasks = {}, {}
-- These lists have one element for each unit:
-- - the index of its last move in `moves`
-- - the index of its last new task in `new_tasks`
-- - the reasons if the unit is refused
-- - the group that it decides, or ''
-- - its flags
-- - its change of a stage's record, or false
local unit_moves, unit_new, refused, decides, flags, changes = {}, {}, {}, {}, {}, {}

local function has_flag(i, flag) return string.find(flags[i], flag, 1, true) end

local function refuse(i, reason)
  local reasons = refused[i] or {}
  refused[i] = reasons
  reasons[#reasons + 1] = reason
end

-- Refuses a unit if there is a reason.
local function refuse_for(i, reason)
  if reason then refuse(i, reason) end
end

do -- read the units
  local fenced, fenced_ids = {}, {} -- the moves with a fence on their score in due, and the ids of their tasks

  local function read_move()
    local shape, id = shapes[tonumber(ARGV[cursor + 1])], ARGV[cursor + 2]
    local head = 5 + (shape.unique and 1 or 0) + (shape.limit and 1 or 0)
    local m = {
      shape, id, tasks .. id, ARGV[cursor + 3], ARGV[cursor + 4], ARGV[cursor + 5], cursor + head, now, false, false,
      false, shape.unique and ARGV[cursor + 6], false, false, shape.limit and ARGV[cursor + head], false, false,
    }
    cursor = cursor + head + #shape.own
    if m[DUE] ~= '' then
      fenced[#fenced + 1], fenced_ids[#fenced + 1] = m, id
    end
    moves[#moves + 1] = m
  end

  local function read_new()
    local new = { group = take(), place = take(), score = take(), look = take(), unique = take() }
    new.properties = tonumber(take())
    new.from, cursor = cursor, cursor + 2 * new.properties
    new_tasks[#new_tasks + 1] = new
  end

  -- The last unit that opens a task in a group, by the group. Each unit checks a group once.
  local checked = {}
  local function check_group(i, group)
    if checked[group] == i then return end
    checked[group] = i
    local wrong_group = not_openable(groups, marks, group)
    if wrong_group then refuse(i, wrong_group) end
  end

  for i = 1, tonumber(take()) do
    local n, new, group = tonumber(take()), tonumber(take()), take()
    decides[i], flags[i], changes[i] = take(), take(), deciding.take_change()
    if group ~= '' and call('EXISTS', groups .. group) == 1 then refuse(i, '=') end
    for _ = 1, n do read_move() end
    for _ = 1, new do
      read_new()
      check_group(i, new_tasks[#new_tasks].group)
      local name = new_tasks[#new_tasks].place
      local no_room = name ~= '' and no_place(name)
      if no_room then refuse(i, no_room) end
    end
    unit_moves[i], unit_new[i] = #moves, #new_tasks
  end

  local scheduled = scores_of(due, fenced_ids)
  for i, m in ipairs(fenced) do m[SCHEDULED] = scheduled[i] end

  -- A manager of the original TDF moves the id of a task to the list `archived`, and leaves its state.
  if next(archiving) then
    local ids = {}
    for i, m in ipairs(moves) do ids[i] = m[ID] end
    local archived = scores_of(list.archived, ids)
    for i, m in ipairs(moves) do m[ARCHIVED] = archived[i] and not m[SHAPE].repair end
  end
end

local late
do
  -- Returns whether the call has taken too long. To save time, it reads the clock only after every 16 tasks.
  local unasked = 0
  function late(tasks_done, times)
    unasked = unasked + tasks_done
    if unasked < 16 then return false end
    unasked = 0
    return spent(times)
  end
end

local wrong_places -- the error reply of a place, or of the set `ended`
local opening, units, from, from_new = 0, #unit_moves, 1, 0

do -- check the units
  -- The timestamps of a round never decrease, even if the clock is set back.
  local function not_before(m, stamped)
    local t = stamped and tonumber(stamped)
    if t and t > m[AT] and t < 1e12 then m[AT] = t end
  end

  local function found(m, state, round, revision)
    state = string.gsub(state, '%c', '?')
    if revision then round = string.format('%s,%.0f', round, revision) end
    return string.format('-%s %s %s', m[ID], round, state)
  end

  -- Returns the task's revision if its move requires one. The argument f has the properties that the script has read.
  local function revision_of(s, f)
    return s.revision_at and math.min(number(f[s.revision_at], 0) or 0, 1e15)
  end

  -- Returns the value that a move writes to a property, or nil if the move does not write to the property.
  local function written(m, name)
    local s = m[SHAPE]
    for i = 1, #s.set, 2 do
      if s.set[i] == name then return s.set[i + 1] end
    end
    for i = 1, #s.own do
      if s.own[i] == name then return ARGV[m[OWN] + i] end
    end
  end

  -- Returns the place in which a task is after a move to the open list. The argument is its place before.
  local function next_place(m, before)
    for _, name in ipairs(m[SHAPE].clear) do
      if name == 'place' then return nil end
    end
    return written(m, 'place') or before
  end

  local function check_places(m, before)
    local s = m[SHAPE]
    if before and (s.from == 'open' or s.repair) then m[LEAVES] = before end
    if s.to == 'open' then m[ENTERS] = next_place(m, before) or false end
    wrong_places = wrong_places or m[LEAVES] and wrong_place(m[LEAVES]) or m[ENTERS] and wrong_place(m[ENTERS])
  end

  -- Reads what links the task to other tasks. Returns the reason why the move must be refused, or nil.
  local function check_links(m, f)
    local s = m[SHAPE]
    if s.links == 'spoils' then
      local endings = s.to == REMOVED and f[s.links_at + 1]
      return needs.refusal(tasks, m[ID], m[GROUP], f[s.links_at], endings, m[DUE] ~= '')
    end
    m[LINKED] = f[s.links_at]
    if m[LINKED] then wrong_places = wrong_places or wrong_ended() end
  end

  -- Returns whether a change of the task must be refused, because it would undo another change. Each change raises the
  -- revision by 1. So of two changes of the same revision, the second is refused.
  local function overtaken(m, revision)
    local to = written(m, 'revision')
    return to and tonumber(to) ~= (number(revision, 0) or 0) + 1
  end

  -- A move with this claim requires a round without a claim.
  local NO_CLAIM = '-'

  -- Returns nil if the task is in the state that the move requires. Returns 'done' if the move is a result that the
  -- same claim has already committed. Otherwise returns the task's true state. If the late result of another claim
  -- has made the task executed, the result of the task's own claim is still accepted.
  local function check(m)
    local s = m[SHAPE]
    s.read[1] = m[KEY]
    local f = redis.pcall('HMGET', unpack(s.read)) -- an error reply if the key is not a hash
    local state, round, claim, executed = f[1] or '', round_of(f[2]), f[5], f[6]
    local revision = revision_of(s, f)
    m[LOG] = f[3]
    if m[ARCHIVED] and archiving[state] then state = 'archived' end
    local mine = m[CLAIM] ~= '' and (claim or NO_CLAIM) == m[CLAIM]
    if mine and executed and s.to == 'executed' then return 'done' end
    if round ~= s.round then return found(m, state, round, revision) end
    if m[CLAIM] ~= '' then
      if not mine then return found(m, state, round, revision) end
      if s.from == 'running' and not executed and state == 'executed' then
        state, m[STRAY] = s.from, 'executed'
      end
    end
    if state ~= s.from then return found(m, state, round, revision) end
    if revision and revision ~= tonumber(s.revision) then return found(m, state, round, revision) end
    if s.from == s.to and overtaken(m, claim) then return found(m, state, round, revision) end
    if m[DUE] ~= '' and score_of(m[SCHEDULED] or '-1') ~= score_of(m[DUE]) then
      return found(m, state, round, revision)
    end
    not_before(m, f[4])
    if s.from == 'running' then not_before(m, f[7]) end
    if s.place then check_places(m, f[s.place]) end
    if s.links_at then return check_links(m, f) end
    if s.repair and s.to == '' then wrong_places = wrong_places or wrong_ended() end
  end

  -- The state to which this call moves a task, by the task's id.
  local moved_to = {}

  -- Returns the task that holds a unique key, or false: the id of a task, or a new task of this call.
  local holders = {}
  local function holder_of(key)
    if holders[key] ~= nil then return holders[key] end
    return task_with_key(unique, key, tasks, holding, moved_to)
  end

  -- Decides which tasks of a unit take their unique keys. Refuses the unit if a task cannot be opened or reopened. Keys
  -- that the unit's other tasks give back are free.
  local function take_keys(i, first_move, last_move, first_new, last_new)
    local reopened, taken = {}, {}
    for j = first_move, last_move do
      local m = moves[j]
      local to = m and m[SHAPE].to
      if m and to ~= UNCHANGED then moved_to[m[ID]] = to ~= '' and to or nil end
      if to == 'open' and m[UNIQUE] then reopened[#reopened + 1] = m end
    end
    local needed = #reopened > 0
    for j = first_new, last_new do needed = needed or new_tasks[j].unique ~= '' end
    if needed and keys_refused then return refuse(i, keys_refused) end
    for _, m in ipairs(reopened) do
      local key = m[UNIQUE]
      local other = holder_of(key)
      if other and other ~= m[ID] then
        refuse(i, string.format('*%s %s', m[ID], type(other) == 'table' and '0' or other))
      else
        taken[#taken + 1] = { key, holders[key] }
        holders[key] = m[ID]
      end
    end
    if refused[i] then -- the unit moves no task and takes no key
      for j = first_move, last_move do
        if moves[j] then moved_to[moves[j][ID]] = nil end
      end
      for _, t in ipairs(taken) do holders[t[1]] = t[2] end
      return
    end
    for j = first_new, last_new do
      local new = new_tasks[j]
      if new.unique ~= '' then
        new.same = holder_of(new.unique)
        if not new.same then holders[new.unique] = new end
      end
    end
  end

  -- Undoes take_keys for the new tasks of a unit that is refused.
  local function give_keys_back(first_new, last_new)
    for j = first_new, last_new do
      local new = new_tasks[j]
      if holders[new.unique] == new then holders[new.unique] = nil end
    end
  end

  -- The answer to a refused unit names all tasks that are not in the state that their moves require. If a move was
  -- already made, it is neither repeated nor refused.
  local stored = stored_tasks(most, FIRST_LIST + lists + #waking)
  for i = 1, #unit_moves do
    if i > 1 and late(unit_moves[i] - unit_moves[i - 1] + unit_new[i] - unit_new[i - 1], 1) then
      units = i - 1
      break
    end
    refuse_for(i, changes[i] and deciding.refusal_of_change(changes[i]))
    for j = from, unit_moves[i] do
      local otherwise = check(moves[j])
      if otherwise then moves[j] = false end
      if otherwise and otherwise ~= 'done' then refuse(i, otherwise) end
    end
    refuse_for(i, decides[i] ~= '' and deciding.refusal_of(decides[i], changes[i]))
    take_keys(i, from, unit_moves[i], from_new + 1, unit_new[i])
    if not refused[i] then
      local new = 0
      for j = from_new + 1, unit_new[i] do
        if not new_tasks[j].same then new = new + 1 end
      end
      local excess = new > 0 and has_flag(i, 'c') and too_many(most, stored + opening, new)
      if excess then
        refuse(i, excess)
        give_keys_back(from_new + 1, unit_new[i])
      else
        opening = opening + new
      end
    end
    if not refused[i] then deciding.accept(decides[i], changes[i]) end
    from, from_new = unit_moves[i] + 1, unit_new[i]
  end
end
if wrong_places then return wrong_places end

local first = 0
if opening > 0 then
  first = free_ids(tasks, counter, opening)
  if not first then return no_ids(counter) end
end

-- From here on, the script writes.

local function look_again(id, look)
  if look then put(looked_at, look, id) else drop(forgotten, id) end
end

local function index(state, id, group)
  local key = group_index(groups, group, id)
  if key then put(into(add, key), place(code[state], id), id) end
end

local function arrive(state, of, score, id, at_place)
  if at_place then return enter_place(at_place, score, id) end
  put(of, score, id)
  arrived[state] = (arrived[state] or 0) + 1
end

local function leave(s, m)
  if m[LEAVES] then leave_place(m[LEAVES], m[ID]) end
  if s.left then
    if not m[LEAVES] then drop(s.left, m[ID]) end
    if m[STRAY] then drop(into(remove, list[m[STRAY]]), m[ID]) end
    return
  end
  for name, key in pairs(list) do -- a repair removes the id from all other lists
    if name ~= s.to or m[ENTERS] then drop(into(remove, key), m[ID]) end
  end
end

-- The indexes of groups that may become empty, by the names of the groups.
local shrunk = {}

local function remove_task(m)
  call('UNLINK', m[KEY], updates .. m[ID], follows .. m[ID], endings_prefix .. 'dependents:' .. m[ID])
  local key = group_index(groups, m[GROUP], m[ID])
  if key then
    drop(into(remove, key), m[ID])
    shrunk[m[GROUP]] = key
  end
  if m[UNIQUE] and redis.pcall('HGET', unique, m[UNIQUE]) == m[ID] then call('HDEL', unique, m[UNIQUE]) end
  look_again(m[ID], nil)
end

local compact
do
  -- Writes a small hash again. Redis keeps the large encoding of a hash, even after it has lost its long values.
  local MOST_COMPACTED = 128 -- Redis's default for the size of a hash with the compact encoding
  function compact(key)
    if call('HLEN', key) > MOST_COMPACTED then return end
    local fields = call('HGETALL', key)
    call('UNLINK', key)
    call('HSET', key, unpack(fields))
  end
end

local function write_task(m)
  local s = m[SHAPE]
  local write = s.write
  write[1], write[3] = m[KEY], logged(m[LOG], s.at_text, who, s.note)
  for i = 1, #s.own do write[s.owned + 2 * i] = ARGV[m[OWN] + i] end
  call('HSET', unpack(write))
  bulk('HDEL', m[KEY], s.clear)
  if s.updates then
    call('UNLINK', updates .. m[ID])
    compact(m[KEY])
  end
end

local function apply(m)
  local s, id = m[SHAPE], m[ID]
  if s.to == UNCHANGED then return end
  if m[AT] ~= s.at then stamp(s, m[AT]) end
  if s.to == '' and not s.repair then
    if s.note ~= '' then write_task(m) end
    return look_again(id, s.look_text)
  end
  leave(s, m)
  if m[LIMIT] then limiting.count(m[LIMIT], id, s.to == 'running') end
  if s.to == '' then -- a repair of an id without a task
    if is_awaited(id) then note_ending(id, '0', 'archived', true) end
    local key = group_index(groups, m[GROUP], id)
    if key then
      drop(into(remove, key), id)
      shrunk[m[GROUP]] = key
    end
    return look_again(id, nil)
  end
  if s.to == REMOVED then return remove_task(m) end
  write_task(m)
  if m[UNIQUE] then call('HSET', unique, m[UNIQUE], id) end
  if m[LINKED] then note_ending(id, s.round, s.to) end
  arrive(s.to, s.entered, s.score_text, id, m[ENTERS])
  index(s.to, id, m[GROUP])
  look_again(id, s.look_text)
end

local opened, open_task = 0, opener(tasks, first, who, shared, {})
local function open(new)
  if new.same then return end
  local id, at, score_text = open_task(new.score, new.from, new.properties)
  new.id = id
  if new.unique ~= '' then call('HSET', unique, new.unique, id) end
  opened = opened + 1
  arrive('open', into(add, list.open), score_text, id, new.place ~= '' and new.place)
  index('open', id, new.group)
  if new.look ~= '-' then look_again(id, moment_text(new.look, at)) end
end

-- Replaces the places of new tasks of a unit by their ids, in the properties that name dependencies.
local function name_dependencies(from_new_task, to_new_task)
  local ids, next_id = {}, first + opened
  for j = from_new_task, to_new_task do
    local new = new_tasks[j]
    if not new.same then
      new.id, next_id = string.format('%.0f', next_id), next_id + 1
    end
    ids[j - from_new_task + 1] = new.id or type(new.same) == 'table' and new.same.id or new.same
  end
  for j = from_new_task, to_new_task do
    local new = new_tasks[j]
    needs.name_tasks(ids, new.from + 1, new.from + 2 * new.properties)
  end
end

local lines = {}
from, from_new = 1, 1
for i = 1, #unit_moves do
  if i <= units and i > 1 and late(unit_moves[i] - from + 1 + unit_new[i] - from_new + 1, 2) then units = i - 1 end
  if i > units then
    lines[i] = '~'
  elseif refused[i] then
    lines[i] = table.concat(refused[i], '\t')
  else
    deciding.apply(decides[i], changes[i])
    lines[i] = unit_new[i] >= from_new and '+' .. string.format('%.0f', first + opened) or '+'
    for j = from, unit_moves[i] do
      if moves[j] then apply(moves[j]) end
    end
    if has_flag(i, 'r') then name_dependencies(from_new, unit_new[i]) end
    for j = from_new, unit_new[i] do
      local new = new_tasks[j]
      open(new)
      local same = new.same
      if same then
        lines[i] = string.format('%s %d=%s', lines[i], j - from_new + 1, type(same) == 'table' and same.id or same)
      end
    end
  end
  from, from_new = unit_moves[i] + 1, unit_new[i] + 1
end
if opened > 0 then call('SET', counter, string.format('%.0f', first + opened - 1)) end
for key, of in pairs(remove) do bulk('ZREM', key, of) end
for key, of in pairs(add) do bulk('ZADD', key, of) end

-- A group without tasks has no mark, so that the marks need no more memory than the groups.
if next(shrunk) and redis.pcall('HLEN', marks) ~= 0 then
  for group, key in pairs(shrunk) do
    if call('EXISTS', key) == 0 then redis.pcall('HDEL', marks, group) end
  end
end

finish_places()
limiting.finish()

for i, state in ipairs(waking) do
  if arrived[state] then wake(KEYS[FIRST_LIST + lists + i - 1], arrived[state]) end
end

answer = table.concat(lines, '\n')
remember(slot, sequence, answer)
return answer
