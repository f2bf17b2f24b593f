-- opening: common code of the scripts that open tasks.

-- Returns n consecutive free ids, and the keys of their tasks. The third result is an error reply if no such ids are
-- left, or if Redis has forgotten ids: the last argument is the highest id that the client has got, or a namespace
-- without a counter lacks its layout version, too. The client then skips ids (fence.lua).
--
-- Another program may have changed the counter, so the next ids may be taken. Then the search continues at higher ids,
-- and doubles its step each time.
local function free_ids(tasks, counter, n, highest)
  local last = math.floor(number(redis.call('GET', counter), 0) or INF)
  if last < tonumber(highest) or last == 0 and redis.call('EXISTS', string.sub(tasks, 1, -6) .. 'schema') == 0 then
    return nil, nil, redis.error_reply('TDFFORGOT ' .. counter .. ' is lower than an id that it gave out')
  end
  local first, step = 1 + last, n
  while first + n <= IDS_END do
    local ids, keys, taken = {}, {}, 0
    for i = 1, n do
      local id = string.format('%.0f', first + i - 1)
      ids[i], keys[i] = id, tasks .. id
    end
    for i = 1, n, 500 do taken = taken + redis.call('EXISTS', unpack(keys, i, math.min(i + 499, n))) end
    if taken == 0 then return ids, keys end
    first, step = first + step, 2 * step
  end
  local why = 'TDFIDS ' .. counter .. ' leaves no ids: it must be a number, and ids end at 1099511627775'
  return nil, nil, redis.error_reply(why)
end

-- Returns the id of the task that holds a unique key, or false. The table `holding` has the states in which a task
-- holds its key, for each value of unique_until. The table `moved_to` has the states to which the call moves tasks, by
-- id. The key `unique` must be a hash.
local function task_with_key(unique, key, tasks, holding, moved_to)
  local id = redis.call('HGET', unique, key)
  if not id then return false end
  local f = redis.pcall('HMGET', tasks .. id, 'unique', 'state', 'unique_until') -- an error if the key is no hash
  local states = holding[f[3] == 'archived' and 'archived' or 'finished']
  return f[1] == key and states[moved_to[id] or f[2]] and id or false
end

-- Reads two lists of states in which a task holds its unique key: for unique_until=finished, and for
-- unique_until=archived.
local function take_holding()
  local finished = take_set()
  return { finished = finished, archived = take_set() }
end

-- Returns the reason why no unique key can be taken, or false.
local function no_keys(unique)
  local wrong = not_hash(unique)
  return wrong and '!redis: ' .. wrong.err
end

-- Returns the reason why no task of the group can be opened, or nil.
local function not_in_group(groups, group)
  if group ~= '' and not group_index(groups, group, 1) then
    return string.format('!redis: WRONGTYPE %s%s is not the index of a group', groups, group)
  end
end

-- Returns the number of tasks in an index whose states have these codes.
local function count_in(index, codes)
  local n = 0
  for _, code in ipairs(codes) do n = n + call('ZCOUNT', index, code * IDS_END, code * IDS_END + IDS_END - 1) end
  return n
end

-- Returns the reason why n more tasks cannot be opened, or nil. The call already opens some. From the given index on,
-- the keys are all lists.
local stored -- the number of tasks before the call
local function too_many(most, first_key, opening, n)
  if most == '' then return nil end
  if not stored then
    stored = 0
    for i = first_key, #KEYS do stored = stored + (select(2, not_sorted(KEYS[i])) or 0) end
  end
  local tasks = stored + opening + n
  if tasks > tonumber(most) then return string.format('^%.0f %s', tasks, most) end
end

-- Returns the mark of a group, or '' if it has none. If the key of the marks has another type, returns '' and a reason.
local known_marks = {}
local function mark_of(marks, group)
  if known_marks[group] then return known_marks[group] end
  local mark = redis.pcall('HGET', marks, group)
  if type(mark) == 'table' then return '', string.format('!redis: WRONGTYPE %s is not a hash', marks) end
  known_marks[group] = mark and string.match(mark, '^%S*') or ''
  return known_marks[group]
end

-- Returns the reason why no task can be opened in a group, or nil. A group with a mark is closed.
local function not_openable(groups, marks, group)
  if group == '' then return nil end
  local wrong = not_in_group(groups, group)
  if wrong then return wrong end
  local mark, unreadable = mark_of(marks, group)
  return unreadable or mark ~= '' and string.format('#%s %s', mark, group) or nil
end

-- Returns '=' if a condition for new tasks does not hold, or nil. '' is no condition, '=group' means that the group has
-- no tasks, and '+group' that it was not extended since it had none.
local function unmet(condition, groups, marks)
  if condition == '' then return nil end
  local group = string.sub(condition, 2)
  if string.sub(condition, 1, 1) == '=' then return call('EXISTS', groups .. group) == 1 and '=' or nil end
  local mark = redis.pcall('HGET', marks, group)
  return type(mark) == 'string' and string.sub(mark, 1, 1) == ' ' and '=' or nil
end

-- Returns a function that writes the next new task, with the next of the ids and keys. The argument `shared` has
-- the properties that all new tasks have in common. The argument `names` has the names of properties that each new task
-- has with a value of its own.
--
-- The function has three arguments: the moment of the score, the index in ARGV before the task's own values, and the
-- number of other properties. These properties, with their values, follow the values in ARGV. The function returns the
-- task's time of opening and its score. From task to task, the time of opening grows by 1 µs, so that the tasks keep
-- their order.
local function opener(ids, keys, who, shared, names)
  local opened, h, named, own = 0, { unpack(shared) }, #shared, #names
  for i = 1, own do h[named + 2 * i - 1] = names[i] end
  return function(score, from, properties)
    local at = now + opened / 1000000
    local at_text = opened == 0 and now_text or string.format('%.6f', at)
    local score_text, ready = at_text, false
    if score ~= '' then
      local t, least = moment(score, now)
      t = t + opened / 1000000
      if t ~= at then
        score_text, ready = text(t), t ~= least
      end
    end
    opened = opened + 1
    for i = 1, own do h[named + 2 * i] = ARGV[from + i] end
    local n = named + 2 * own
    for i = 1, 2 * properties do h[n + i] = ARGV[from + own + i] end
    n = n + 2 * properties
    if ready then
      h[n + 1], h[n + 2] = 'ready', score_text
      n = n + 2
    end
    write_task(keys[opened], at_text, who, ids[opened], unpack(h, 1, n))
    return at, score_text
  end
end
