-- open: opens tasks, all of them or none.
--
-- - from-state: none
-- - to-state: open
--
-- KEYS:
--  1. calls of this client
--  2. due
--  3. task_id
--  4. open
--  5. wake list of the workers
--  6. groups: the marks of groups
-- - if the number of tasks has a limit: all lists
--
-- ARGV:
--  1. call slot
--  2. sequence number
--  3. the largest number of tasks, or ''
--  4. prefix of task keys
--  5. prefix of group keys
--  6. code of the state open in an index
--  7. name of the component or user that makes the call
--  8. a group that must have no tasks, or '' for no condition
--  9. '1' if openplain.lua may open the tasks when 3 and 8 are empty, or ''
-- - the number of different names of indexes of the new tasks, and these names (see group_and_queue)
-- - the number of places of the new tasks, and these places (see places.lua)
-- - the number of properties that all new tasks have in common, and these properties with their values
-- - the number of properties that each new task has with a value of its own, and the names of these properties
-- - '1' if new tasks have other properties, too, or ''
-- - '1' and a placement, if all new tasks have this placement, or ''
-- - the number of new tasks, and the tasks
--
-- Each new task is:
-- - its placement, if the new tasks have different placements
-- - the number of its other properties, if new tasks have other properties
-- - the values of the properties that each new task has
-- - its other properties, with their values
--
-- A placement is:
-- - the index of the task's names among these names, or 0
-- - the index of the task's place among the places, or 0
-- - score and due time, which are moments as in transact.lua
--
-- Returns '+' and the first id, '=', '#mark group', '^tasks limit' or '!reason', as transact.lua does. It also returns
-- the errors of transact.lua.

local due, open_list = KEYS[2], KEYS[4]
local most, tasks, groups, code, who, new_group = unpack(ARGV, 3, 8)
cursor = 9

local answer, stale = answered()
if answer or stale then return answer or stale end

local indexed, of_place = take_list(1), take_list(1)
if of_place[1] then use_places(open_list) end
local shared, names, have_others = take_list(2), take_list(1), take() == '1'
local names_at, at_place, score, look
local function take_placement()
  names_at, at_place, score, look = unpack(ARGV, cursor + 1, cursor + 4)
  cursor = cursor + 4
end
local same_placement = take() == '1'
if same_placement then take_placement() end
local n = tonumber(take())

local wrong = not_sorted(due) or not_sorted(open_list)
if wrong then return wrong end
local refused = new_group ~= '' and call('EXISTS', groups .. new_group) == 1 and '='
for i = 1, #indexed do refused = refused or not_openable(groups, KEYS[6], (group_and_queue(indexed[i]))) end
for i = 1, #of_place do refused = refused or no_place(of_place[i]) end
refused = refused or too_many(most, stored_tasks(most, 7), n)
if refused then
  remember(refused)
  return refused
end

local ids, keys, none_left = free_ids(tasks, KEYS[3], n)
if none_left then return none_left end

-- From here on, the script writes.

local opened, looks, n_opened = {}, {}, 0
local open = opener(ids, keys, who, shared, names)
for i = 1, n do
  if not same_placement then take_placement() end
  local others = have_others and tonumber(take()) or 0
  local id, at, score_text = ids[i], open(score, cursor, others)
  cursor = cursor + #names + 2 * others
  if at_place ~= '0' then
    enter_place(of_place[tonumber(at_place)], score_text, id)
  else
    opened[n_opened + 1], opened[n_opened + 2] = score_text, id
    n_opened = n_opened + 2
  end
  if look ~= '-' then put(looks, moment_text(look, at), id) end
  if names_at ~= '0' then enter_indexes(groups, indexed[tonumber(names_at)], code, id) end
end
call('SET', KEYS[3], ids[n])
bulk('ZADD', open_list, opened)
bulk('ZADD', due, looks)
finish_indexes()
keep_names(groups, indexed)
if n_opened > 0 then wake(KEYS[5], n_opened / 2) end
finish_places()

answer = '+' .. ids[1]
remember(answer)
return answer
