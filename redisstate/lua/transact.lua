-- transact: moves tasks from one state to another and opens new ones.
--
-- - from-state: for each move, the state and the round that it requires
-- - to-state: for each move, the state to which it leads, or none if it removes the task; open for new tasks
--
-- A call is a list of units. A unit consists of moves and new tasks that happen together or not at all. Units do not
-- depend on each other. No task occurs twice in a call. Before its first write, the script reads everything that its
-- decisions need. If the call takes too long, the script leaves out the last units, but never the first.
--
-- KEYS, after those of moving.lua:
--  3. task_id
--  4. unique
--  5. groups: the marks of groups
--  6. pipelines: the records of the stages of pipelines
-- - the lists
-- - the wake lists
-- - if the number of tasks has a limit: all lists
--
-- ARGV, after those of moving.lua:
--  6. prefix of the keys of updates
--  7. prefix of the keys of followers
--  8. the largest number of tasks, or ''
--  9. code of the state open in an index
-- - the number of states in which a task with unique_until=finished holds its unique key, and these states
-- - the same for unique_until=archived
-- - the number of states in which a task in the list `archived` counts as archived, and these states; none if no move
--   leaves such a state
-- - the number of codes of the states in which a task is not finished, and these codes
-- - the number of lists in KEYS, and the name of each
-- - the number of wake lists in KEYS, and the name of the list to which each belongs
-- - the number of forms, and the forms (see moving.lua)
-- - the number of properties that all new tasks have in common, and these properties with their values
-- - the number of units, and the units
--
-- The lists are those that moves leave or enter. If a move is a repair, they are all lists. The name of a list is its
-- state.
--
-- Each unit is:
-- - number of moves
-- - number of new tasks
-- - the group that must not have tasks yet, or ''
-- - the group that must be closed and have only finished tasks, or ''; the unit changes its mark to `decided`
-- - flags, or '': 'r' if new tasks wait for other new tasks of the unit, 'c' if the unit must not exceed the largest
--   number of tasks, and 'm' if new tasks can be opened in the closed group of the task that the first move moves
-- - the stage whose record the unit changes, or ''. If there is one, these arguments follow:
--   - the record that the stage must have, or '' for none
--   - its new record
--   - the key of stored definitions, or ''
--   - the number of chunks that these definitions must have; they are kept from now on. Or a minus and the chunk that
--     is removed
-- - the moves
-- - the new tasks
--
-- Each move is: number of its form, and the move (see moving.lua). A task that is reopened takes its unique key, and a
-- task that is removed gives it back.
--
-- Each new task is: the names of its indexes, place or '' (see places.lua), score, due time, its unique key or '', the
-- number of its properties, and these properties with their values.
--
-- Score and due time are moments (see the function `moment` in the prelude).
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
local counter, unique, marks = KEYS[3], KEYS[4], KEYS[5]
local FIRST_LIST = 7
local updates, follows, most, open_code = ARGV[6], ARGV[7], ARGV[8], tonumber(ARGV[9])
cursor = 9

local holding, settled = take_holding(), take_set()
deciding.use(groups, marks, KEYS[6], take_list(1))
local keys_refused = next(holding.finished) and no_keys(unique)
local lists, list = take_list(1), {}
for i, name in ipairs(lists) do list[name] = KEYS[FIRST_LIST + i - 1] end
local waking = take_list(1)
if list.open then use_places(list.open) end
use_endings(due)
limiting.use(due)
local wrong = not_sorted(due)
for _, key in pairs(list) do wrong = wrong or not_sorted(key) end
if wrong then return wrong end

-- The first part of the script reads the whole call, and then everything that the decisions need.

local forms = {}
for i = 1, tonumber(take()) do forms[i] = read_form() end
local shared = take_list(2)

local form_of = {} -- the form of each move, or false if the move is refused, or need not be made
local new_tasks = {}
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
  local function read_new()
    local new = { names = take(), place = take(), score = take(), look = take(), unique = take() }
    new.group, new.properties = group_and_queue(new.names), tonumber(take())
    new.from, cursor = cursor, cursor + 2 * new.properties
    new_tasks[#new_tasks + 1] = new
  end

  -- The last unit that opens a task in a group, by the group. Each unit checks a group once.
  local checked = {}
  local function check_group(i, group, own)
    if checked[group] == i then return end
    checked[group] = i
    local wrong_group = not_openable(groups, marks, group)
    if group == own and wrong_group == '#closed ' .. group then return end
    if wrong_group then refuse(i, wrong_group) end
  end

  for i = 1, tonumber(take()) do
    local n, new, group = tonumber(take()), tonumber(take()), take()
    decides[i], flags[i], changes[i] = take(), take(), deciding.take_change()
    if group ~= '' and call('EXISTS', groups .. group) == 1 then refuse(i, '=') end
    -- The names are those of the first move. They follow the number of its form and its id.
    local own = has_flag(i, 'm') and group_and_queue(ARGV[cursor + 3])
    for _ = 1, n do
      local form = forms[tonumber(take())]
      form_of[add_move(form)] = form
    end
    for _ = 1, new do
      read_new()
      check_group(i, new_tasks[#new_tasks].group, own)
      local name = new_tasks[#new_tasks].place
      local no_room = name ~= '' and no_place(name)
      if no_room then refuse(i, no_room) end
    end
    unit_moves[i], unit_new[i] = #moves, #new_tasks
  end
end
look_up(list.archived, settled)

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

local opening, units, from, from_new = 0, #unit_moves, 1, 0

do -- check the units
  -- Returns the same as the function check. Also refuses to remove a task, or its outputs, if other tasks need it.
  local function check_unit_move(form, j)
    local otherwise, f = check(form, j)
    if otherwise then return otherwise end
    if form.links == 'spoils' then
      local at = moves[j]
      local endings = form.to == REMOVED and f[form.linked + 1]
      return needs.refusal(tasks, ARGV[at + 1], ARGV[at + 2], f[form.linked], endings, form.fence)
    end
    if form.repair and form.to == '' then wrong_move = wrong_move or wrong_ended() end
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
      local form = form_of[j]
      local to = form and form.to
      if form and to ~= UNCHANGED then moved_to[ARGV[moves[j] + 1]] = to ~= '' and to or nil end
      if to == 'open' and form.unique then reopened[#reopened + 1] = j end
    end
    local needed = #reopened > 0
    for j = first_new, last_new do needed = needed or new_tasks[j].unique ~= '' end
    if needed and keys_refused then return refuse(i, keys_refused) end
    for _, j in ipairs(reopened) do
      local id, key = ARGV[moves[j] + 1], ARGV[moves[j] + form_of[j].unique]
      local other = holder_of(key)
      if other and other ~= id then
        refuse(i, string.format('*%s %s', id, type(other) == 'table' and '0' or other))
      else
        taken[#taken + 1] = { key, holders[key] }
        holders[key] = id
      end
    end
    if refused[i] then -- the unit moves no task and takes no key
      for j = first_move, last_move do
        if form_of[j] then moved_to[ARGV[moves[j] + 1]] = nil end
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
  local stored = stored_tasks(most, FIRST_LIST + #lists + #waking)
  for i = 1, #unit_moves do
    if i > 1 and late(unit_moves[i] - unit_moves[i - 1] + unit_new[i] - unit_new[i - 1], 1) then
      units = i - 1
      break
    end
    refuse_for(i, changes[i] and deciding.refusal_of_change(changes[i]))
    for j = from, unit_moves[i] do
      local otherwise = check_unit_move(form_of[j], j)
      if otherwise == 'done' and has_flag(i, 'm') then -- the new tasks were opened, too
        otherwise = string.format('-%s %s executed', ARGV[moves[j] + 1], form_of[j].round)
      end
      if otherwise then form_of[j] = false end
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
if wrong_move then return wrong_move end

local ids, keys = {}, {}
if opening > 0 then
  ids, keys = free_ids(tasks, counter, opening)
  if not ids then return no_ids(counter) end
end

-- From here on, the script writes.

for _, form in ipairs(forms) do
  if not form.repair and form.to ~= '' and form.to ~= UNCHANGED then form.left = into(remove, list[form.from]) end
  if form.to ~= '' and list[form.to] then form.entered = into(add, list[form.to]) end
  if list.executed then form.stray = into(remove, list.executed) end
end

local function look_again(id, look)
  if look then put(looks, look, id) else forgotten[#forgotten + 1] = id end
end

-- The indexes of groups that may become empty, by the names of the groups.
local shrunk = {}

-- Removes a task from its indexes, and from `due`.
local function forget(id, names)
  local of_group, of_queue = indexes_of(groups, names, id)
  if of_group then
    shrunk[group_and_queue(names)] = of_group
    table.insert(into(remove, of_group), id)
  end
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
local function open(new)
  if new.same then return end
  opened = opened + 1
  local id, at, score_text = ids[opened], open_task(new.score, new.from, new.properties)
  new.id = id
  if new.unique ~= '' then call('HSET', unique, new.unique, id) end
  if new.place ~= '' then enter_place(new.place, score_text, id) else put(into(add, list.open), score_text, id) end
  if new.names ~= '' then
    enter_indexes(groups, new.names, open_code, id)
    if entered[#entered] ~= new.names then entered[#entered + 1] = new.names end
  end
  if new.look ~= '-' then look_again(id, moment_text(new.look, at)) end
end

-- Replaces the places of new tasks of a unit by their ids, in the properties that name dependencies.
local function name_dependencies(from_new_task, to_new_task)
  local named, n = {}, opened
  for j = from_new_task, to_new_task do
    local new = new_tasks[j]
    if not new.same then
      n = n + 1
      new.id = ids[n]
    end
    named[j - from_new_task + 1] = new.id or type(new.same) == 'table' and new.same.id or new.same
  end
  for j = from_new_task, to_new_task do
    local new = new_tasks[j]
    needs.name_tasks(named, new.from + 1, new.from + 2 * new.properties)
  end
end

-- Opens the tasks of a unit. Returns what its line says of tasks that others have opened. The follow-ups of a result or
-- a callback belong to the round of the unit's first move.
local function open_unit(i)
  local before, first, line = opened, form_of[from], ''
  for j = from_new, unit_new[i] do
    local new = new_tasks[j]
    open(new)
    local same = new.same
    if same then
      line = string.format('%s %d=%s', line, j - from_new + 1, type(same) == 'table' and same.id or same)
    end
  end
  if opened > before and from <= unit_moves[i] and (has_flag(i, 'm') or first.to == 'archived') then
    local key = tasks .. ARGV[moves[from] + 1]
    call('HSET', key, first.round .. ':follow_ups', ids[before + 1] .. '-' .. ids[opened])
  end
  return line
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
    lines[i] = unit_new[i] >= from_new and '+' .. (ids[opened + 1] or '0') or '+'
    for j = from, unit_moves[i] do
      if form_of[j] then apply(form_of[j], j) end
    end
    if has_flag(i, 'r') then name_dependencies(from_new, unit_new[i]) end
    lines[i] = lines[i] .. open_unit(i)
  end
  from, from_new = unit_moves[i] + 1, unit_new[i] + 1
end
if opened > 0 then call('SET', counter, ids[opened]) end
finish_moves()
limiting.finish()

keep_names(groups, entered)

-- A group without tasks has no mark and no name, so that these need no more memory than the groups.
for group, key in pairs(shrunk) do
  if call('EXISTS', key) == 0 then
    redis.pcall('HDEL', marks, group)
    redis.pcall('ZREM', beside(groups, 'group_names'), group)
  end
end

for i, state in ipairs(waking) do
  local arrived = #into(add, list[state]) / 2
  if arrived > 0 then wake(KEYS[FIRST_LIST + #lists + i - 1], arrived) end
end

local answer = table.concat(lines, '\n')
remember(answer)
return answer
