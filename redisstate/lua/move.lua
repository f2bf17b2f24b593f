-- move: makes many moves of one form. They leave the same state and round, enter the same state, and set the same
-- properties. Each move succeeds or fails on its own. The script is faster than transact.lua, which makes all other
-- moves.
--
-- from-state and to-state: two different states, which the form names
--
-- KEYS, after those of moving.lua: the list that the tasks leave, the list that they enter, another list that may have
-- the tasks (`archived` if they are finished, otherwise `executed`), and the wake lists of the components that wait for
-- tasks in the list that they enter
-- ARGV, after those of moving.lua: the index of the form's first argument if plain.lua may make the moves, or ''; the
-- number of states in which a task in the list `archived` counts as archived, and these states (none if the tasks are
-- not finished); the form and the moves (see moving.lua)
--
-- Returns a line for each move: '+', '-id round state' or '~', as transact.lua does. If a key has a wrong type, the
-- script writes nothing and returns the error WRONGTYPE.

local left, entered, other = KEYS[3], KEYS[4], KEYS[5]
cursor = 6

local wrong = not_sorted(due) or not_sorted(left) or not_sorted(entered) or not_sorted(other)
if wrong then return wrong end

local settled, form = take_set(), read_form()
form.seen = seen
if form.limit then limiting.use(due) end
if form.place then use_places(form.from == 'open' and left or entered) end
if form.linked then use_endings(due) end
form.left, form.entered, form.stray = into(remove, left), into(add, entered), into(remove, other)
while cursor < #ARGV do add_move(form) end
local n = #moves
look_up(other, settled)

local made, refused = 0, {} -- the number of moves for which there was time, and the reasons why they are refused
while made < n and (made % 16 > 0 or made == 0 or not spent(1)) do
  made = made + 1
  refused[made] = check(form, made)
end
if wrong_move then return wrong_move end

-- From here on, the script writes.
local lines = {}
for i = 1, n do
  if i <= made and i % 16 == 1 and i > 1 and spent(2) then made = i - 1 end
  if i > made then
    lines[i] = '~'
  elseif refused[i] and refused[i] ~= 'done' then
    lines[i] = refused[i]
  else
    lines[i] = '+'
    if not refused[i] then
      local at = moves[i]
      move(form, i, ARGV[at + 1], ARGV[at + 2])
      if form.limit then limiting.count(ARGV[at + form.limit], ARGV[at + 1], form.to == 'running') end
    end
  end
end
finish_moves()
if #form.entered > 0 then
  for i = 6, #KEYS do wake(KEYS[i], #form.entered / 2) end
end

answer = table.concat(lines, '\n')
remember(answer)
return answer
