-- moving: common code of the scripts that move tasks. A form is what several moves of a call have in common. So a call
-- contains it once, and the script prepares it once. Each call of a script creates all of these functions. The more
-- outer locals a function uses, the longer this takes. So rare cases share functions, and are noted in one table.
--
-- KEYS of these scripts: calls of this client, due
-- ARGV of these scripts: call slot ('' if the claim identifies a repeated call), sequence number, prefixes of the keys
-- of tasks and of groups, name of the user or component that makes the call, for the logs of the tasks
--
-- A form is:
-- - from
-- - round
-- - the revision that the task must have, or '' for any revision
-- - to, or '' if the task stays in its list, or '-' if the move removes the task, or '=' if the move changes nothing
--   and is only a guard: the unit requires that the task has the state, the round and the revision. If the task stays
--   and there is no note, the move only changes its due time.
-- - code of the state `to` in an index
-- - 'ends' if the move ends the task: no server reopens it; 'spoils' if it removes the task or its outputs; else ''
-- - score and due time, which are moments: times relative to the call (see the function `moment`)
-- - note for the log
-- - '1' for a repair
-- - '1' if the task's updates are removed, and its hash is made compact
-- - the number of arguments of a move
-- - the positions of the following of these arguments, or '': claim, fence on the score in due, limit key, unique key,
--   and min and max for the first moment
-- - the indexes in the reply of HMGET of `place`, `revision`, and `links` or `dependents`, or ''. `endings` follows
--   `dependents` if the move removes the task
-- - the number of arguments of HSET before the properties whose values are times, and before the moves' own properties
-- - the number of arguments of HMGET, of arguments of HSET, and of properties whose value is a time
-- - the arguments of HMGET, without the key, those of HSET, without the key, the log, times and own values, the moments
--   of the properties whose value is a time, the number of properties to remove, and these properties
--
-- A move is: id, the names of its indexes, the values of its own properties, and the arguments whose positions the form
-- has.

local tasks, groups, who = ARGV[3], ARGV[4], ARGV[5]
local due = KEYS[2]
local REMOVED, UNCHANGED = '-', '='

-- Changes of sorted sets, by key. The script writes them together at the end.
local remove, add = {}, {}
local looks, forgotten = into(add, due), into(remove, due)

-- These lists have an element for each move of the call: the index in ARGV before its first argument; its time (the
-- timestamps of a round never decrease, even if the clock is set back); the task's log; and nil, or a table with what
-- is special about the task:
-- - leaves, enters: its places before and after the move, or nil (see places.lua)
-- - links: this property, if the move ends the task (see endings.lua)
-- - stray: whether a result of another claim has put the task into the list `executed`
local moves, times, logs, special = {}, {}, {}, {}
local begun = {} -- the ids of tasks with results, by round

-- Reads a form. Its fields `read` and `write` hold the arguments of HMGET and HSET. Each move adds its key to both, and
-- its log and own values to `write`. The fields `place`, `revised` and `linked` are indexes in the reply of HMGET. To
-- add 0 makes a number of a text, without a call.
local function read_form()
  local from, round, revision, to, code, links, score, look, note, repair = unpack(ARGV, cursor + 1, cursor + 10)
  local updates, size, claim, fence, limit, unique, span, placed_at = unpack(ARGV, cursor + 11, cursor + 18)
  local revised, linked, stamped, owned, n_read, n_write, n_stamps = unpack(ARGV, cursor + 19, cursor + 25)
  local read, write, stamps = cursor + 26, cursor + 26 + n_read, cursor + 26 + n_read + n_write
  cursor = stamps + n_stamps - 1
  return {
    from = from, round = round, revision = revision, to = to, code = code, links = links, score = score, look = look,
    note = note, repair = repair == '1', updates = updates == '1', size = size + 0, claim = claim ~= '' and claim + 0,
    fence = fence ~= '' and fence + 0, limit = limit ~= '' and limit + 0, unique = unique ~= '' and unique + 0,
    span = span ~= '' and span + 0, place = placed_at ~= '' and placed_at + 0, stamped = stamped + 0, owned = owned + 0,
    revised = revised ~= '' and revised + 0, linked = linked ~= '' and linked + 0,
    read = { unpack(ARGV, read, write - 1) }, write = { unpack(ARGV, write, stamps - 1) },
    stamps = { unpack(ARGV, stamps, cursor) }, clear = take_list(1),
    has_result = ARGV[write + stamped] == round .. ':executed',
  }
end

-- Reads the arguments of a move, and returns its number.
local fenced = {} -- the numbers of the moves with a fence on their score in `due`
local function add_move(form)
  local i = #moves + 1
  moves[i], cursor = cursor, cursor + form.size
  if form.fence then fenced[#fenced + 1] = i end
  return i
end

-- Reads the scores for the fences, and finds the tasks in the list `archived`. A manager of the original TDF moves the
-- id of a task to this list, and leaves its state. The argument `settled` is the set of the states in which such a task
-- counts as archived. It is empty if no task of the call can be such a task.
local scheduled, archived, archiving = {}, nil, nil
local function look_up(list, settled)
  local ids = {}
  for j, i in ipairs(fenced) do ids[j] = ARGV[moves[i] + 1] end
  for j, score in ipairs(scores_of(due, ids)) do scheduled[fenced[j]] = score end
  if not next(settled) then return end
  for i = 1, #moves do ids[i] = ARGV[moves[i] + 1] end
  archived, archiving = scores_of(list, ids), settled
end

-- Returns the value that a move of a form writes to a property, or nil; and whether the move removes the property.
local function written(form, i, name)
  for j = 2, #form.write, 2 do
    local own = (j - form.owned + 1) / 2
    if form.write[j] == name then return own > 0 and ARGV[moves[i] + 2 + own] or form.write[j + 1] end
  end
  for _, cleared in ipairs(form.clear) do
    if cleared == name then return nil, true end
  end
end

-- Does the same as the function check, for a task that may not be in the required state. Each change raises the
-- revision of the task by 1. So of two changes of the same revision, the second is refused.
local function check_state(form, i, f, mine)
  local from, state, round, revision = form.from, f[1] or '', round_of(f[2]), nil
  if archived and archived[i] and archiving[state] and not form.repair then state = 'archived' end
  if round == form.round and mine and from == 'running' and not f[6] and state == 'executed' then
    state, special[i] = from, { stray = true }
  end
  local fits = round == form.round and state == from and (mine or not form.claim)
  if form.revised then
    revision = number(f[form.revised], 0) or 0
    local to = from == form.to and written(form, i, 'revision')
    fits = fits and (not to or tonumber(to) == revision + 1)
    revision = math.min(revision, 1e15)
    fits = fits and (form.revision == '' or revision == tonumber(form.revision))
  end
  if fits and form.fence then
    fits = score_of(scheduled[i] or '-1') == score_of(ARGV[moves[i] + form.fence])
  end
  if fits then return nil end
  if form.revision ~= '' then round = string.format('%s,%.0f', round, revision) end
  return string.format('-%s %s %s', ARGV[moves[i] + 1], round, (string.gsub(state, '%c', '?')))
end

-- Returns whether the moves of a form write what a worker must offer. Only users change that; repairs may, too.
local function changes_requirement(form, i)
  for _, name in ipairs({ 'queue', 'tags', 'resources', 'min_time', 'program', 'source' }) do
    local value, cleared = written(form, i, name)
    if value or cleared then return not form.repair end
  end
  return false
end

-- Notes the places that the task leaves and enters, and its property `links`. Returns the reason why it cannot enter
-- its new place, or nil.
local wrong_move -- the error reply of a place, or of the set `ended`
local function note_special(form, i, f)
  local leaves, enters, links = form.place and f[form.place], nil, form.links == 'ends' and f[form.linked]
  if form.place and form.to == 'open' then
    local place, cleared = written(form, i, 'place')
    enters = place or not cleared and leaves
  end
  if form.from ~= 'open' and not form.repair then leaves = nil end
  if not (leaves or enters or links) then return end
  local s = special[i] or {}
  special[i], s.leaves, s.enters, s.links = s, leaves, enters, links
  wrong_move = wrong_move or leaves and wrong_place(leaves) or enters and wrong_place(enters)
    or links and wrong_ended()
  if not enters or enters == leaves or wrong_move then return nil end
  if form.asks == nil then form.asks = changes_requirement(form, i) end
  return form.asks and select(2, no_place((call('HGET', form.read[1], 'owner') or '') .. '\n' .. enters))
end

-- Returns the later one of two times. A text without a plausible time does not count.
local function not_before(at, time)
  local t = time and tonumber(time)
  return t and t > at and t < 1e12 and t or at
end

-- Returns nil if the task is in the state that the move requires, and the values that the script has read. Returns
-- 'done' if the move is a result that the same claim has already committed. Otherwise returns the task's true state. If
-- the late result of another claim has made the task executed, the result of the task's own claim is still accepted.
-- The claim '-' requires a round without a claim.
local function check(form, i)
  local at, read, from = moves[i], form.read, form.from
  read[1] = tasks .. ARGV[at + 1]
  local f = form.seen and form.seen[i] or try('HMGET', unpack(read)) -- an error reply if the key is not a hash
  local mine = form.claim and (f[5] or '-') == ARGV[at + form.claim]
  if mine and f[6] and form.has_result then return 'done' end
  if f[1] ~= from or f[2] ~= form.round or form.claim and not mine or form.fence or form.revised
    or archived and archived[i] then
    local otherwise = check_state(form, i, f, mine)
    if otherwise then return otherwise end
  end
  times[i], logs[i] = not_before(now, f[4]), f[3]
  if from == 'running' and f[7] then times[i] = not_before(times[i], f[7]) end
  if form.span then times[i] = not_before(times[i], ARGV[at + form.span]) end -- the end of the round comes first
  return (form.place or form.linked and f[form.linked]) and note_special(form, i, f) or nil, f
end

-- From here on, the functions write.

-- Writes the hash of the task. Most moves of a form have the same time, so their common texts are written once.
local function stamp(form, at)
  local write, stamps, stamped = form.write, form.stamps, form.stamped
  local at_text = at == now and now_text or text(at)
  form.at, form.line = at, at_text .. ' ' .. who .. ': ' .. form.note
  form.score_text, form.look_text = moment_text(form.score, at) or 'inf', moment_text(form.look, at)
  for i = 1, #stamps do write[stamped + 2 * i] = moment_text(stamps[i], at) end
end

-- If a finished task is reopened, or a task gets another program, this counts as a use of the stored program. A removal
-- of the program that has looked at the task before then fails (see drop.lua).
local STATES_OF_ROUNDS = { open = true, running = true, executed = true }
local function use_program(form, i, key)
  if form.uses == nil then
    form.uses = form.to == 'open' and not STATES_OF_ROUNDS[form.from] or written(form, i, 'source') ~= nil
  end
  local sum = form.uses and string.match(redis.call('HGET', key, 'source') or '', '^redis:(%x+)')
  if sum then redis.pcall('ZADD', beside(groups, 'programs_used'), 'XX', 'GT', now_text, sum) end
end

local function write_task(form, i, id)
  local at, write, owned, t = moves[i] or 0, form.write, form.owned, times[i]
  if t ~= form.at then stamp(form, t) end
  write[1], write[3] = tasks .. id, logged(logs[i], form.line)
  local own = at + 2 - owned / 2
  for j = owned + 2, #write, 2 do write[j] = ARGV[own + j / 2] end
  if form.span then
    local least, most = ARGV[at + form.span], ARGV[at + form.span + 1]
    if most ~= '' then t = math.min(t, tonumber(most)) end
    write[form.stamped + 2] = text(math.max(t, tonumber(least)))
  end
  redis.call('HSET', unpack(write))
  if form.clear[1] then bulk('HDEL', write[1], form.clear) end
  use_program(form, i, write[1])
end

-- The form's fields `left`, `stray` and `entered` are the changes of the list that the tasks leave, of the list that
-- has the stray tasks, and of the list that they enter.
local function leave(form, s, id)
  if s.leaves then leave_place(s.leaves, id) elseif form.left then form.left[#form.left + 1] = id end
  if s.stray then form.stray[#form.stray + 1] = id end
end

-- Returns the names of a task's indexes (see group_and_queue). The queue of an open task may have changed since the
-- caller read the task, and the move itself may change it, so the script reads it again.
local function present_names(form, i, id, names)
  if form.from ~= 'open' and form.to ~= 'open' then return names end
  local queue, cleared = written(form, i, 'queue')
  local placed = special[i] and special[i].leaves or string.find(names, '\n', 1, true)
  if not (queue or cleared) and (form.from ~= 'open' or not placed) then return names end
  return names_of(group_and_queue(names), call('HGET', tasks .. id, 'queue'))
end

-- Changes when the server looks at the task again; nil means never.
local function look_again(id, look)
  if look then put(looks, look, id) else forgotten[#forgotten + 1] = id end
end

-- Moves the task to its new list.
local function move(form, i, id, names)
  local before = present_names(form, i, id, names)
  write_task(form, i, id)
  local s, left = special[i], form.left
  if s and s.links then note_ending(id, form.round, form.to) end
  if s then leave(form, s, id) elseif left then left[#left + 1] = id end
  if form.has_result then table.insert(into(begun, form.round), id) end
  if s and s.enters then enter_place(s.enters, form.score_text, id) else put(form.entered, form.score_text, id) end
  look_again(id, form.look_text)
  names = present_names(form, i, id, before)
  if names ~= '' then enter_indexes(groups, names, form.code, id) end
  if names == before then return end
  local _, of_queue = indexes_of(groups, before, id)
  if of_queue then table.insert(into(remove, of_queue), id) end
  keep_names(groups, { names })
end

local function finish_moves()
  for key, of in pairs(remove) do bulk('ZREM', key, of) end
  for key, of in pairs(add) do bulk('ZADD', key, of) end
  finish_indexes()
  wake_for_groups(groups)
  finish_places()
  for round, ids in pairs(begun) do sources.note_starts(beside(groups, ''), ids, round) end
  if limiting.finish then limiting.finish() end
  -- A queue or group without tasks has no name, and the group no mark. So these need no more memory than the tasks.
  local queues = beside(groups, 'queue:') -- as long as `groups`
  for key in pairs(remove) do
    local prefix = string.sub(key, 1, #groups)
    if (prefix == groups or prefix == queues) and call('EXISTS', key) == 0 then
      local name = string.sub(key, #groups + 1)
      redis.pcall('ZREM', beside(groups, prefix == groups and 'group_names' or 'queue_names'), name)
      if prefix == groups then redis.pcall('HDEL', beside(groups, 'groups'), name) end
    end
  end
end
