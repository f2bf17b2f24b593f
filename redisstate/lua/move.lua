-- move: makes many moves of one form. They leave the same state and round, enter the same state, and set the same
-- properties. Each move succeeds or fails on its own. The script is faster than transact.lua, which makes all other
-- moves.
--
-- - from-state: the state that the form names
-- - to-state: another state, which the form also names
--
-- KEYS:
--  1. calls of this client
--  2. due
--  3. the list that the tasks leave
--  4. the list that the tasks enter
--  5. another list that may have the tasks: `archived` if they are finished, otherwise `executed`
-- - the wake lists of the components that wait for tasks in list 4
--
-- ARGV:
--  1. call slot, or '' if the claim identifies a repeated call
--  2. sequence number
--  3. prefix of task keys
--  4. prefix of group keys
--  5. name of the component or user that makes the call
-- - the number of states in which a task in the list `archived` counts as archived, and these states; none if the
--   tasks are not finished
-- - the form (see read_form)
-- - the moves
--
-- Each move is:
-- - id, claim, fence on the score in due, and group
-- - the values of the move's own properties
-- - min and max for the first moment, if the form says that each move has its own
-- - its limit key, if the form says that each move has one
--
-- Returns a line for each move: '+', '-id round state' or '~', as transact.lua does. If a key has a wrong type, the
-- script writes nothing and returns the error WRONGTYPE.

local due, left, entered, other = KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local slot, sequence, tasks, groups, who = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4], ARGV[5]
cursor = 5

local answer, stale = answered(slot, sequence)
if answer or stale then return answer or stale end

local wrong = not_sorted(due) or not_sorted(left) or not_sorted(entered) or not_sorted(other)
if wrong then return wrong end

limiting.use(due)
local archiving = take_set()
local form = read_form()
local from, round, to = form.from, form.round, form.to
local each = 4 + #form.own + (form.own_moment and 2 or 0) + (form.limit and 1 or 0)
local n = (#ARGV - cursor) / each

-- Read and check.

local of = round .. ':'
local read = { '', 'state', 'round', 'log', of .. from, of .. 'claim', of .. 'executed', of .. 'started' }
local reads = from == 'running' and 8 or 6
local has_place, placed_at = from == 'open' or to == 'open', reads
if has_place then
  read[reads + 1] = 'place'
  reads = reads + 1
  use_places(from == 'open' and left or entered)
end
if form.ends then
  read[reads + 1] = 'links'
  reads = reads + 1
  use_endings(due)
end
-- The index of these lists is the number of the move.
local logs, times, strays, refused, at_place, links = {}, {}, {}, {}, {}, {}

-- A manager of the original TDF moves the id of a task to the list `archived`, and leaves its state.
local archived = {}
if next(archiving) then
  local ids = {}
  for i = 1, n do ids[i] = ARGV[cursor + (i - 1) * each + 1] end
  archived = scores_of(other, ids)
end

local function found(id, state, in_round)
  state = string.gsub(state, '%c', '?')
  return string.format('-%s %s %s', id, in_round, state)
end

-- Returns the same as the function check of transact.lua.
local function check(i, id, claim)
  read[1] = tasks .. id
  local f = redis.pcall('HMGET', unpack(read, 1, reads)) -- an error reply if the key is not a hash
  local state, mine = f[1] or '', claim ~= '' and (f[5] or '-') == claim
  if mine and f[6] and to == 'executed' then return 'done' end
  if archived[i] and archiving[state] then state = 'archived' end
  if f[2] ~= round and round_of(f[2]) ~= round then return found(id, state, round_of(f[2])) end
  if claim ~= '' and not mine then return found(id, state, round) end
  if mine and from == 'running' and not f[6] and state == 'executed' then
    state, strays[i] = from, true
  end
  if state ~= from then return found(id, state, round) end
  logs[i], times[i] = f[3], not_before(not_before(now, f[4]), from == 'running' and f[7] or nil)
  at_place[i] = has_place and f[placed_at] or nil
  links[i] = form.ends and f[reads - 1] or nil
  wrong = wrong or at_place[i] and wrong_place(at_place[i]) or links[i] and wrong_ended()
end

local made = 0 -- the number of moves for which there was time
local fenced, fenced_by = {}, {}
while made < n and (made % 16 > 0 or made == 0 or not spent(1)) do
  local at = cursor + made * each
  made = made + 1
  refused[made] = check(made, ARGV[at + 1], ARGV[at + 2])
  if ARGV[at + 3] ~= '' and not refused[made] then
    fenced[#fenced + 1], fenced_by[#fenced_by + 1] = ARGV[at + 1], made
  end
end
local scheduled = scores_of(due, fenced)
for i, by in ipairs(fenced_by) do
  if score_of(scheduled[i] or '-1') ~= score_of(ARGV[cursor + (by - 1) * each + 3]) then
    refused[by] = found(fenced[i], from, round)
  end
end

if wrong then return wrong end

-- From here on, the script writes.

local lines = {}
local move, finish = mover(form, tasks, groups, who)
for i = 1, n do
  if i <= made and i % 16 == 1 and i > 1 and spent(2) then made = i - 1 end
  if i > made then
    lines[i] = '~'
  elseif refused[i] and refused[i] ~= 'done' then
    lines[i] = refused[i]
  else
    lines[i] = '+'
    local at = cursor + (i - 1) * each
    if not refused[i] then
      move(ARGV[at + 1], logs[i], times[i], ARGV[at + 4], at + 4, strays[i], at_place[i], links[i])
      if form.limit then limiting.count(ARGV[at + each], ARGV[at + 1], to == 'running') end
    end
  end
end
finish(left, entered, due, other, 6)
limiting.finish()

answer = table.concat(lines, '\n')
remember(slot, sequence, answer)
return answer
