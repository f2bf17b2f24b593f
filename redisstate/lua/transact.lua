-- transact: moves tasks from one state to another and opens new ones.
--
-- from-state: for each move, the state and the round that it requires; to-state: for each move, the state to which it
-- leads, or none if it removes the task; open for new tasks
--
-- A call is a list of units. A unit consists of moves and new tasks that happen together or not at all. Units do not
-- depend on each other. No task occurs twice in a call. Before its first write, the script reads everything that its
-- decisions need. If the call takes too long, the script leaves out the last units, but never the first.
--
-- KEYS, after those of moving.lua: task_id, unique, groups (the marks of groups), pipelines (the records of the stages
-- of pipelines) or periodic (the records of periodic tasks), the lists, the wake lists; if the number of tasks has a
-- limit, all lists follow
--
-- ARGV, after those of moving.lua:
-- - the prefixes of the keys of updates and of followers, the largest number of tasks or '', and the code of the state
--   open in an index
-- - the number of states in which a task with unique_until=finished holds its unique key, and these states
-- - the same for unique_until=archived
-- - the number of states in which a task in the list `archived` counts as archived, and these states; none if no move
--   leaves such a state
-- - the number of codes of the states in which a task is not finished, and these codes
-- - the number of lists in KEYS, and the state of each. They are those that moves leave or enter, or all lists if a
--   move is a repair
-- - the number of wake lists in KEYS, and the state of the list to which each belongs
-- - the number of forms, and the forms (see moving.lua)
-- - the number of properties that all new tasks have in common, and these properties with their values
-- - the number of units, and the units
--
-- Each unit is:
-- - number of moves, number of new tasks
-- - a condition (see the function `unmet`)
-- - the group that must be closed and have only finished tasks, or ''; the unit changes its mark to `decided`
-- - flags, or '': 'r' if new tasks wait for other new tasks of the unit, 'c' if the unit must not exceed the largest
--   number of tasks, 'm' if new tasks can be opened in the closed group of the task that the first move moves, and 'i'
--   if the new record gets the ids of the new tasks
-- - the stage whose record the unit changes, or ''. If there is one, these arguments follow:
--   - the record that the stage must have, or '' for none
--   - its new record
--   - the key of stored definitions, or ''
--   - the number of chunks that these definitions must have; they are kept from now on. Or a minus and the chunk that
--     is removed
-- - the moves: each is the number of its form, and the move (see moving.lua). A task that is reopened takes its unique
--   key, and a task that is removed gives it back
-- - the new tasks: each is the names of its indexes, its place or '' (see `no_place`), its score and due time, which
--   are moments (see the function `moment`), its unique key or '', the number of its properties, and these properties
--   with their values
-- - the highest id that the client has got, or 0
--
-- Returns a line for each unit:
-- - '+' and the id of its first new task; the ids of the other new tasks follow in ascending order. If another task
--   holds the unique key of the i-th new task, that one was not opened, and ' i=id' names the other task
-- - '~': there was no time for the unit; the client sends it again
-- - all reasons why the unit was refused, with a tab between two of them:
--   - '*id other': the task cannot be reopened, because the other task holds its unique key
--   - '-id round state': the task is not in the state that its move requires; these are its true round and state. If
--     the move requires a revision, a comma and the true revision follow the round.
--   - '=': the condition does not hold
--   - '#mark group': no task can be opened in the group, because it has this mark
--   - '%mark group': the group cannot be decided: its mark is not `closed`, or some of its tasks are not finished
--   - '@record': the stage has another record than the required one; this is its true record
--   - '?': the stored definitions do not exist, or lack chunks
--   - '^tasks limit': there are this many tasks, and the unit would exceed the limit
--   - '$owner name': there are too many requirements for a new one, which has this name: the tasks of this owner have
--     too many, or if the owner is '', the namespace has too many with due tasks
--   - '&reason': nobody knows yet whether unfinished tasks need a task that would be removed; the reason says why
--   - '!reason': Redis cannot carry out the unit, for the given reason
--
-- If the call is impossible, the script writes nothing and returns one of these errors: 'TDFSTALE' if a later call of
-- the same call slot was already answered, 'TDFIDS' if no ids are left, or 'WRONGTYPE' if a key has another type.

local counter, unique = KEYS[3], KEYS[4]
local FIRST_LIST = 7
local updates, follows, most, open_code = unpack(ARGV, 6, 9)
cursor = 9

local answer = answered()
if answer then return answer end
local holding, settled = take_holding(), take_set()
local keyed = next(holding.finished) -- whether a task of the call has a unique key
local keys_refused = keyed and no_keys(unique)
deciding.unfinished = take_list(1)
local lists, list, wrong = take_list(1), {}, not_sorted(due)
for i, name in ipairs(lists) do
  list[name] = KEYS[FIRST_LIST + i - 1]
  wrong = wrong or not_sorted(list[name])
end
if wrong then return wrong end
local waking = take_list(1)
if list.open then use_places(list.open) end
use_endings(due)
limiting.use(due)

-- The first part of the script reads the whole call, and then everything that the decisions need.

local forms = {}
for i = 1, tonumber(take()) do forms[i] = read_form() end
local shared = take_list(2)

local form_of = {} -- the form of each move, or false if the move is refused, or need not be made
-- A unit has these fields:
-- - from, to: the indexes in `moves` of its first and its last move
-- - new: its new tasks
-- - decides: the group that it decides, or ''
-- - change: its change of a stage's record, or false
-- - flags, and refused: the reasons if it is refused
local units = {}

local function has_flag(u, flag) return string.find(u.flags, flag, 1, true) end

-- Refuses a unit if there is a reason.
local function refuse(u, reason)
  if reason then table.insert(into(u, 'refused'), reason) end
end

do -- read the units
  local function read_new()
    local t = { names = take(), place = take(), score = take(), look = take(), unique = take() }
    t.properties = tonumber(take())
    t.from, cursor = cursor, cursor + 2 * t.properties
    return t
  end

  local checked = {} -- the last unit that opens a task in a group, by the group: each unit checks a group once
  local function check_new(u, t, own)
    local group = group_and_queue(t.names)
    if checked[group] ~= u then
      local reason = not_openable(groups, marks, group)
      if group ~= own or reason ~= '#closed ' .. group then refuse(u, reason) end
    end
    checked[group] = u
    if t.place == '' then return end
    local reason
    t.place, reason = no_place(t.place)
    refuse(u, reason)
  end

  for i = 1, tonumber(take()) do
    local n_moves, n_new, condition = take() + 0, take() + 0, take()
    local u = { from = #moves + 1, new = {}, decides = take(), flags = take(), change = deciding.take_change() }
    units[i], u.to = u, #moves + n_moves
    refuse(u, unmet(condition, groups, marks))
    -- The names are those of the first move. They follow the number of its form and its id.
    local own = has_flag(u, 'm') and group_and_queue(ARGV[cursor + 3])
    for _ = 1, n_moves do
      local form = forms[take() + 0]
      form_of[add_move(form)] = form
    end
    for j = 1, n_new do
      u.new[j] = read_new()
      check_new(u, u.new[j], own)
    end
  end
end
look_up(list.archived, settled)

-- Returns whether the call has taken too long to begin a unit. To save time, it reads the clock only after 16 tasks.
local unasked = 0
local function late(u, times)
  unasked = unasked + u.to - u.from + 1 + #u.new
  if unasked < 16 or u == units[1] then return false end
  unasked = 0
  return spent(times)
end

-- The number of new tasks to open, and of units for which there is time
local opening, in_time = 0, #units

do -- check the units
  -- Returns the same as the function check. Also refuses to remove a task, or its outputs, if other tasks need it.
  local function check_unit_move(form, j)
    local otherwise, f = check(form, j)
    if otherwise then return otherwise end
    if form.links == 'spoils' then
      local at = moves[j]
      local endings = form.to == REMOVED and f[form.linked + 1]
      return needs.refusal(tasks, ARGV[at + 1], ARGV[at + 2], f[form.linked], endings)
    end
    if form.repair and form.to == '' then wrong_move = wrong_move or wrong_ended() end
  end

  -- The state to which this call moves a task, by the task's id. The task that holds a unique key after the accepted
  -- units, by the key: the id of a task, or a new task of this call.
  local moved_to, holders = {}, {}
  local function holder_of(key) return holders[key] or task_with_key(unique, key, tasks, holding, moved_to) end

  local function give_key(u, key, holder)
    put(into(u, 'taken'), key, holders[key] or false)
    holders[key] = holder
  end

  -- Decides which tasks of a unit take their unique keys. Refuses the unit if a task cannot be opened or reopened. Keys
  -- that the unit's other tasks give back are free.
  local function take_keys(u)
    local reopened, needed = {}, false
    for j = u.from, u.to do
      local form = form_of[j]
      local to = form and form.to
      if form and to ~= UNCHANGED then moved_to[ARGV[moves[j] + 1]] = to ~= '' and to or nil end
      if to == 'open' and form.unique then reopened[#reopened + 1] = j end
    end
    for _, t in ipairs(u.new) do needed = needed or t.unique ~= '' end
    if keys_refused and (needed or reopened[1]) then return refuse(u, keys_refused) end
    for _, j in ipairs(reopened) do
      local id, key = ARGV[moves[j] + 1], ARGV[moves[j] + form_of[j].unique]
      local other = holder_of(key)
      if other and other ~= id then
        refuse(u, string.format('*%s %s', id, type(other) == 'table' and '0' or other))
      else
        give_key(u, key, id)
      end
    end
    if u.refused then return end
    for _, t in ipairs(u.new) do
      t.same = t.unique ~= '' and holder_of(t.unique)
      if t.unique ~= '' and not t.same then give_key(u, t.unique, t) end
    end
  end

  -- Undoes take_keys, because the unit is refused.
  local function give_back(u)
    for j = u.from, u.to do
      if form_of[j] then moved_to[ARGV[moves[j] + 1]] = nil end
    end
    local taken = u.taken or {}
    for i = #taken - 1, 1, -2 do holders[taken[i]] = taken[i + 1] or nil end
  end

  -- The answer to a refused unit names all tasks that are not as required. A move that was already made is neither
  -- repeated nor refused.
  for i, u in ipairs(units) do
    if late(u, 1) then
      in_time = i - 1
      break
    end
    refuse(u, u.change and deciding.refusal_of_change(u.change))
    for j = u.from, u.to do
      local otherwise = check_unit_move(form_of[j], j)
      if otherwise == 'done' and has_flag(u, 'm') then -- the new tasks were opened, too
        otherwise = string.format('-%s %s executed', ARGV[moves[j] + 1], form_of[j].round)
      end
      if otherwise then form_of[j] = false end
      if otherwise and otherwise ~= 'done' then refuse(u, otherwise) end
    end
    refuse(u, u.decides ~= '' and deciding.refusal_of(u.decides, u.change))
    if keyed then take_keys(u) end
    local new = 0
    for _, t in ipairs(u.new) do
      if not t.same then
        new = new + 1
        t.number = opening + new
      end
    end
    if new > 0 and not u.refused and has_flag(u, 'c') then
      refuse(u, too_many(most, FIRST_LIST + #lists + #waking, opening, new))
    end
    if u.refused then
      give_back(u)
    else
      opening = opening + new
      deciding.accept(u.decides, u.change)
    end
  end
end
if wrong_move then return wrong_move end

local ids, keys = {}, {}
if opening > 0 then
  ids, keys, wrong = free_ids(tasks, counter, opening, ARGV[#ARGV])
  if wrong then return wrong end
end

-- From here on, the script writes.
for _, form in ipairs(forms) do
  if not form.repair and form.to ~= '' and form.to ~= UNCHANGED then form.left = into(remove, list[form.from]) end
  if form.to ~= '' and list[form.to] then form.entered = into(add, list[form.to]) end
  if list.executed then form.stray = into(remove, list.executed) end
end

-- Removes a task from its indexes, and from `due`.
local function forget(id, names)
  local of_group, of_queue = indexes_of(groups, names, id)
  if of_group then table.insert(into(remove, of_group), id) end
  if of_queue then table.insert(into(remove, of_queue), id) end
  look_again(id, nil)
end

local function remove_task(id, names, key)
  call('UNLINK', tasks .. id, updates .. id, follows .. id, endings_prefix .. 'dependents:' .. id)
  if key and redis.pcall('HGET', unique, key) == id then call('HDEL', unique, key) end
  forget(id, names)
end

-- Writes a small hash again. Redis keeps the large encoding of a hash, even after it has lost its long values.
local MOST_COMPACTED = 128 -- Redis's default for the size of a hash with the compact encoding
local function compact(key)
  if call('HLEN', key) > MOST_COMPACTED then return end
  local fields = call('HGETALL', key)
  call('UNLINK', key)
  call('HSET', key, unpack(fields))
end

-- Removes the id from all lists except the new one.
local function repair(form, i, id)
  for name, key in pairs(list) do
    if name ~= form.to or special[i] and special[i].enters then table.insert(into(remove, key), id) end
  end
end

local function apply(form, i)
  local at, to = moves[i], form.to
  local id, names, key = ARGV[at + 1], ARGV[at + 2], form.unique and ARGV[at + form.unique]
  if to == UNCHANGED then return end
  if form.limit then limiting.count(ARGV[at + form.limit], id, to == 'running') end
  if form.repair then repair(form, i, id) end
  if to == REMOVED then
    leave(form, special[i] or {}, id)
    remove_task(id, present_names(form, i, id, names), key)
  elseif to ~= '' then
    move(form, i, id, names)
    if key then call('HSET', unique, key, id) end
  elseif form.repair then -- of an id without a task
    leave(form, special[i] or {}, id)
    if is_awaited(id) then note_ending(id, '0', 'archived', true) end
    forget(id, names)
  else
    if form.note ~= '' then write_task(form, i, id) else stamp(form, times[i]) end
    look_again(id, form.look_text)
  end
  if form.updates and to ~= REMOVED then
    call('UNLINK', updates .. id)
    compact(tasks .. id)
  end
end

local entered = {} -- the names of the indexes of the new tasks
local opened, open_task = 0, opener(ids, keys, who, shared, {})

-- Returns the id of a new task, or of the task that holds its unique key.
local function id_of(t)
  local holder = t.same or t
  return type(holder) == 'table' and ids[holder.number] or holder
end

local function open(t)
  opened = t.number
  local id, at, score_text = ids[opened], open_task(t.score, t.from, t.properties)
  if t.unique ~= '' then call('HSET', unique, t.unique, id) end
  if t.place ~= '' then enter_place(t.place, score_text, id) else put(into(add, list.open), score_text, id) end
  if t.names ~= '' then
    enter_indexes(groups, t.names, open_code, id)
    if entered[#entered] ~= t.names then entered[#entered + 1] = t.names end
  end
  if t.look ~= '-' then look_again(id, moment_text(t.look, at)) end
end

-- Opens the tasks of a unit, and returns the unit's line. The follow-ups of a result or a callback belong to the round
-- of the unit's first move.
local function open_unit(u)
  if has_flag(u, 'r') then
    local named = {} -- the ids that replace the places of new tasks, in the properties that name dependencies
    for j, t in ipairs(u.new) do named[j] = id_of(t) end
    for _, t in ipairs(u.new) do needs.name_tasks(named, t.from + 1, t.from + 2 * t.properties) end
  end
  local first, form = opened + 1, form_of[u.from]
  local line = u.new[1] and '+' .. (ids[first] or '0') or '+'
  for j, t in ipairs(u.new) do
    if t.same then line = string.format('%s %d=%s', line, j, id_of(t)) else open(t) end
  end
  if opened >= first and u.from <= u.to and (has_flag(u, 'm') or form.to == 'archived') then
    local key = tasks .. ARGV[moves[u.from] + 1]
    call('HSET', key, form.round .. ':follow_ups', ids[first] .. '-' .. ids[opened])
  end
  return line
end

local lines = {}
for i, u in ipairs(units) do
  if i <= in_time and late(u, 2) then in_time = i - 1 end
  if i > in_time then
    lines[i] = '~'
  elseif u.refused then
    lines[i] = table.concat(u.refused, '\t')
  else
    deciding.apply(u.decides, u.change)
    for j = u.from, u.to do
      if form_of[j] then apply(form_of[j], j) end
    end
    lines[i] = open_unit(u)
    if u.change and has_flag(u, 'i') then
      local opened_ids = {}
      for j, t in ipairs(u.new) do opened_ids[j] = id_of(t) end
      deciding.add_ids(u.change, table.concat(opened_ids, ','))
    end
  end
end
if opened > 0 then call('SET', counter, ids[opened]) end
finish_moves()
keep_names(groups, entered)

for i, state in ipairs(waking) do
  local arrived = #into(add, list[state]) / 2
  if arrived > 0 then wake(KEYS[FIRST_LIST + #lists + i - 1], arrived) end
end

answer = table.concat(lines, '\n')
remember(answer)
return answer
