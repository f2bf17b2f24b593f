-- open: opens tasks, all of them or none.
--
-- from-state: none; to-state: open
--
-- KEYS: calls of this client, task_id, open, wake list of the workers; if the number of tasks has a limit, all lists
-- follow
--
-- ARGV; a number is the index of the first argument in its line:
--  1. call slot, sequence number, the highest id that the client has got, the largest number of tasks or ''
--  5. name of the component or user that makes the call
--  6. '', and the lines with a star; or if openplain.lua may open the tasks when 4 is empty, nothing
-- * a condition (see the function `unmet`), and the code of the state open in an index
-- * the number of different names of indexes of the new tasks, and these names (see group_and_queue)
-- * the number of places of the new tasks, and these places (see the function `no_place`)
-- - the number of arguments that follow: the properties that all new tasks have in common, with their values
-- - the number of properties that each new task has with a value of its own, and the names of these properties
-- * '1' if new tasks have other properties, too, or ''
-- * '1' and a placement, if all new tasks have this placement, or ''
-- - the number of new tasks, and the tasks
--
-- Each new task is: its placement, if the new tasks have different placements; the number of its other properties, if
-- new tasks have other properties; the values of the properties that each new task has; its other properties, with
-- their values. A placement is: the index of the task's names among these names, or 0; the index of its place among the
-- places, or 0; score and due time, which are moments (see the function `moment`).
--
-- Returns '+' and the first id, '=', '#mark group', '^tasks limit', '$owner name', '!reason' or an error, as
-- transact.lua does.

local counter, open_list, workers = unpack(KEYS, 2, 4)
local most, who, plain = ARGV[4], ARGV[5], ARGV[6] ~= ''
local prefix = string.sub(open_list, 1, -1 - #'open')
local due, tasks, groups, marks = prefix .. 'due', prefix .. 'task:', prefix .. 'group:', prefix .. 'groups'

local answer = answered()
if answer then return answer end

local condition, code, indexed, of_place = '', nil, {}, {}
cursor = 5
if not plain then
  cursor = 6
  condition, code, indexed, of_place = take(), take(), take_list(1), take_list(1)
end
if of_place[1] then use_places(open_list) end
local shared, names = take_list(1), take_list(1)
local have_others, same_placement = false, plain
local names_at, at_place, score, look = '0', '0', '', '-'
local function take_placement()
  names_at, at_place, score, look = unpack(ARGV, cursor + 1, cursor + 4)
  cursor = cursor + 4
end
if not plain then
  have_others, same_placement = take() == '1', take() == '1'
  if same_placement then take_placement() end
end
local n = tonumber(take())

local wrong = not_sorted(due) or not_sorted(open_list)
if wrong then return wrong end
local refused = unmet(condition, groups, marks)
for i = 1, #indexed do refused = refused or not_openable(groups, marks, (group_and_queue(indexed[i]))) end
for i = 1, #of_place do
  local reason
  of_place[i], reason = no_place(of_place[i])
  refused = refused or reason
end
refused = refused or too_many(most, 5, 0, n)
if refused then
  remember(refused)
  return refused
end

local ids, keys, none_left = free_ids(tasks, counter, n, ARGV[3])
if none_left then return none_left end

-- From here on, the script writes.
local opened, looks = {}, {}
local open = opener(ids, keys, who, shared, names)
for i = 1, n do
  if not same_placement then take_placement() end
  local others = have_others and tonumber(take()) or 0
  local id, at, score_text = ids[i], open(score, cursor, others)
  cursor = cursor + #names + 2 * others
  if at_place ~= '0' then
    enter_place(of_place[tonumber(at_place)], score_text, id)
  else
    put(opened, score_text, id)
  end
  if look ~= '-' then put(looks, moment_text(look, at), id) end
  if names_at ~= '0' then enter_indexes(groups, indexed[tonumber(names_at)], code, id) end
end
call('SET', counter, ids[n])
bulk('ZADD', open_list, opened)
bulk('ZADD', due, looks)
finish_indexes()
keep_names(groups, indexed)
if opened[1] then wake(workers, #opened / 2) end
finish_places()

answer = '+' .. ids[1]
remember(answer)
return answer
