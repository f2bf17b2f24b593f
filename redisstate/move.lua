-- move: makes moves of the same form: from the same state, in the same round, to the same state, with the same
-- properties. Each move succeeds or fails on its own. This is the fast way for moves that come by the thousand.
-- transact.lua makes all other moves.
--
-- from-state  the argument `from`
-- to-state    the argument `to`, another state
--
-- KEYS  1 calls of this client   2 due   3 the list that the tasks leave   4 the list that they enter
--       5 the list of executed tasks   then wake lists of the components that wait for tasks in list 4
-- ARGV  1 call slot ('': the claim identifies a repeated call)   2 sequence number   3 prefix of task keys
--       4 prefix of group keys   5 the name of the component or user that makes the call
--       6 from   7 round   8 to   9 code of `to` in a group's index   10 score   11 due time   12 note for the log
--       n, n properties and values
--       n, n properties and moments
--       n, n properties to remove
--       n, n names of the moves' own properties
--       1 if the first moment is a move's own, 0 if not
--       for each move: id, claim, score in due, group, the values of its own properties, its own moment
--   Score and due time are moments, as in transact.lua. A move's own moment is two arguments: min and max.
--
-- Returns a line for each move: '+', '-id round state' or '~', as transact.lua does. It returns the error WRONGTYPE
-- before it has written anything.

local call = redis.call
local due, left, entered, executed = KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local slot, sequence, tasks, groups, who = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4], ARGV[5]
local from, round, to, code = ARGV[6], ARGV[7], ARGV[8], tonumber(ARGV[9])
local score, look, note = ARGV[10], ARGV[11], ARGV[12]
cursor = 12

local answer, stale = answered(slot, sequence)
if answer or stale then return answer or stale end

local wrong = not_sorted(due) or not_sorted(left) or not_sorted(entered) or not_sorted(executed)
if wrong then return wrong end

local set, stamps, clear, own = take_list(2), take_list(2), take_list(1), take_list(1)
local own_moment = take() == '1'
local FIXED = 4 -- arguments of a move before its own values
local each = FIXED + #own + (own_moment and 2 or 0)
local n = (#ARGV - cursor) / each

-- Read and check.

local of = round .. ':'
local read = { '', 'state', 'round', 'log', of .. from, of .. 'claim', of .. 'executed', of .. 'started' }
local reads = from == 'running' and 8 or 6
local logs, times, strays, refused = {}, {}, {}, {} -- by the number of the move

local function found(id, state, in_round)
  state = string.gsub(state, '%c', '?')
  return string.format('-%s %s %s', id, in_round, state)
end

-- The timestamps of a round never decrease, even if the clock is set back.
local function not_before(i, stamped)
  local t = stamped and tonumber(stamped)
  if t and t > (times[i] or now) and t < 1e12 then times[i] = t end
end

-- Returns the same as the function check of transact.lua.
local function check(i, id, claim)
  read[1] = tasks .. id
  local f = redis.pcall('HMGET', unpack(read, 1, reads)) -- an error if the key is not a hash
  local state, mine = f[1] or '', claim ~= '' and (f[5] or '-') == claim
  if mine and f[6] and to == 'executed' then return 'done' end
  if f[2] ~= round and round_of(f[2]) ~= round then return found(id, state, round_of(f[2])) end
  if claim ~= '' and not mine then return found(id, state, round) end
  if mine and from == 'running' and not f[6] and state == 'executed' then
    state, strays[i] = from, true
  end
  if state ~= from then return found(id, state, round) end
  logs[i] = f[3]
  not_before(i, f[4])
  not_before(i, f[7])
end

local made = 0 -- the moves that there was time for
local fenced, fenced_by = {}, {}
while made < n and (made % 16 > 0 or made == 0 or not spent(1)) do
  local at = cursor + made * each
  made = made + 1
  refused[made] = check(made, ARGV[at + 1], ARGV[at + 2])
  if ARGV[at + 3] ~= '' and not refused[made] then
    fenced[#fenced + 1], fenced_by[#fenced_by + 1] = ARGV[at + 1], made
  end
end
for i = 1, #fenced, 500 do
  local scores = call('ZMSCORE', due, unpack(fenced, i, math.min(i + 499, #fenced)))
  for j = 1, #scores do
    local move = fenced_by[i + j - 1]
    if score_of(scores[j] or '-1') ~= score_of(ARGV[cursor + (move - 1) * each + 3]) then
      refused[move] = found(fenced[i + j - 1], from, round)
    end
  end
end

-- From here on, the script writes.

local write = { '', 'log', '', unpack(set) }
local stamped, owned = #write, #write + #stamps
for i = 1, #stamps, 2 do write[stamped + i] = stamps[i] end
for i, name in ipairs(own) do write[owned + 2 * i - 1] = name end
local last = owned + 2 * #own
local score_text, look_text, at_text

local function stamp(at)
  at_text, score_text, look_text = at == now and now_text or text(at), moment_text(score, at), moment_text(look, at)
  for i = 1, #stamps, 2 do write[stamped + i + 1] = moment_text(stamps[i + 1], at) end
end

local function between(at, least, most)
  if most ~= '' then at = math.min(at, tonumber(most)) end
  return text(math.max(at, tonumber(least)))
end

local removed, added, looks, forgotten, stray, indexed = {}, {}, {}, {}, {}, {}

local function move(i, at)
  local id, group = ARGV[at + 1], ARGV[at + 4]
  write[1], write[3] = tasks .. id, logged(logs[i], at_text, who, note)
  for j = 1, #own do write[owned + 2 * j] = ARGV[at + FIXED + j] end
  if own_moment then
    write[stamped + 2] = between(times[i] or now, ARGV[at + each - 1], ARGV[at + each])
  end
  call('HSET', unpack(write, 1, last))
  if #clear > 0 then call('HDEL', write[1], unpack(clear)) end
  removed[#removed + 1] = id
  if strays[i] then stray[#stray + 1] = id end
  local k = #added
  added[k + 1], added[k + 2] = score_text, id
  if look_text then
    k = #looks
    looks[k + 1], looks[k + 2] = look_text, id
  else
    forgotten[#forgotten + 1] = id
  end
  local key = group ~= '' and group_index(groups, group, id)
  if key then
    local index = indexed[key] or {}
    indexed[key], k = index, #index
    index[k + 1], index[k + 2] = place(code, id), id
  end
end

local lines, stamped_at = {}, now
stamp(now)
for i = 1, n do
  if i <= made and i % 16 == 1 and i > 1 and spent(2) then made = i - 1 end
  if i > made then
    lines[i] = '~'
  elseif refused[i] and refused[i] ~= 'done' then
    lines[i] = refused[i]
  else
    lines[i] = '+'
    local at = times[i] or now
    if at ~= stamped_at then
      stamp(at)
      stamped_at = at
    end
    if not refused[i] then move(i, cursor + (i - 1) * each) end
  end
end
bulk('ZREM', left, removed)
bulk('ZREM', executed, stray)
bulk('ZADD', entered, added)
bulk('ZADD', due, looks)
bulk('ZREM', due, forgotten)
for key, index in pairs(indexed) do bulk('ZADD', key, index) end
if #removed > 0 then
  for i = 6, #KEYS do wake(KEYS[i], #removed) end
end

answer = table.concat(lines, '\n')
remember(slot, sequence, answer)
return answer
