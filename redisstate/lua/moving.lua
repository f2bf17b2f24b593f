-- moving: common code of the scripts for moves of one form. Go puts it between the prelude and the source of the
-- script.

-- Reads a form: the states, the round and the properties that all moves of a call have in common.
--
-- The arguments of a form are, in this order:
-- - from, round, to
-- - code of the state `to` in a group's index
-- - '1' if the moves end the tasks: no server reopens them
-- - score and due time, which are moments: times relative to the call (see the function `moment` in the prelude)
-- - note for the log
-- - the number of properties to write, and these properties with their values
-- - the number of properties whose value is a time, and for each its name and its moment
-- - the number of properties to remove, and these properties
-- - the number of the moves' own properties, and their names
-- - '1' if each move has its own min and max for its first moment
-- - '1' if each move has a limit key
local function read_form()
  return {
    from = take(), round = take(), to = take(), code = tonumber(take()), ends = take() == '1',
    score = take(), look = take(), note = take(),
    set = take_list(2), stamps = take_list(2), clear = take_list(1), own = take_list(1), own_moment = take() == '1',
    limit = take() == '1',
  }
end

-- Returns `at` or the time in the text `stamped`, whichever is later. The timestamps of a round never decrease, even if
-- the clock is set back. If the text holds no plausible time, returns `at`.
local function not_before(at, stamped)
  local t = stamped and tonumber(stamped)
  if t and t > at and t < 1e12 then return t end
  return at
end

-- Returns the functions `move` and `finish`. The function `move` writes the hash of one task. The move's own values
-- begin at ARGV[position + 1]. If a result of another claim has put the task into the executed list, `is_stray` is
-- true. If the task leaves or enters the open list, `at_place` is its place or nil (see places.lua). If the move ends
-- the task, `links` is this property or nil (see endings.lua). After the last move, the function `finish` changes the
-- lists.
local function mover(form, tasks, groups, who)
  local stamps, own, set = form.stamps, form.own, form.set
  local write = { '', 'log', '', unpack(set) }
  local stamped, owned = #write, #write + #stamps
  for i = 1, #stamps, 2 do write[stamped + i] = stamps[i] end
  for i, name in ipairs(own) do write[owned + 2 * i - 1] = name end
  local last = owned + 2 * #own
  local stamped_at, at_text, score_text, look_text
  local removed, added, looks, forgotten, stray, indexed = {}, {}, {}, {}, {}, {}

  local function stamp(at)
    stamped_at, at_text = at, at == now and now_text or text(at)
    score_text, look_text = moment_text(form.score, at) or 'inf', moment_text(form.look, at)
    for i = 1, #stamps, 2 do write[stamped + i + 1] = moment_text(stamps[i + 1], at) end
  end

  local function between(at, least, most)
    if most ~= '' then at = math.min(at, tonumber(most)) end
    return text(math.max(at, tonumber(least)))
  end

  local function move(id, log, at, group, position, is_stray, at_place, links)
    if at ~= stamped_at then stamp(at) end
    write[1], write[3] = tasks .. id, logged(log, at_text, who, form.note)
    for i = 1, #own do write[owned + 2 * i] = ARGV[position + i] end
    if form.own_moment then
      position = position + #own
      write[stamped + 2] = between(at, ARGV[position + 1], ARGV[position + 2])
    end
    redis.call('HSET', unpack(write, 1, last))
    if #form.clear > 0 then redis.call('HDEL', write[1], unpack(form.clear)) end
    if links then note_ending(id, form.round, form.to) end
    if at_place and form.from == 'open' then leave_place(at_place, id) else removed[#removed + 1] = id end
    if is_stray then stray[#stray + 1] = id end
    local k
    if at_place and form.to == 'open' then
      enter_place(at_place, score_text, id)
    else
      k = #added
      added[k + 1], added[k + 2] = score_text, id
    end
    if look_text then
      k = #looks
      looks[k + 1], looks[k + 2] = look_text, id
    else
      forgotten[#forgotten + 1] = id
    end
    local key = group_index(groups, group, id)
    if key then
      local index = indexed[key] or {}
      indexed[key], k = index, #index
      index[k + 1], index[k + 2] = place(form.code, id), id
    end
  end

  -- The wake lists are in KEYS, from the index first_wake on.
  local function finish(left, entered, due, executed, first_wake)
    bulk('ZREM', left, removed)
    bulk('ZREM', executed, stray)
    bulk('ZADD', entered, added)
    bulk('ZADD', due, looks)
    bulk('ZREM', due, forgotten)
    for key, index in pairs(indexed) do bulk('ZADD', key, index) end
    if #added > 0 then
      for i = first_wake, #KEYS do wake(KEYS[i], #added / 2) end
    end
    finish_places()
  end

  return move, finish
end
