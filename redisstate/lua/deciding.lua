-- deciding: common code for decisions about groups, and for the records of the stages of pipelines. A unit of
-- transact.lua may decide a group, and may change the record of a stage. If a call has the key of the records of
-- periodic tasks instead, it changes one of those.
--
-- For each unit, a script calls deciding.refusal_of_change and deciding.refusal_of, and deciding.accept if nothing
-- refuses the unit. At last it calls deciding.apply for each accepted unit.

local marks, pipelines = KEYS[5], KEYS[6]
local deciding = {
  unfinished = {}, -- the codes of the states in which a task is not finished
  decided = {}, -- the groups that units of this call decide
  records = {}, -- the records of stages after the accepted units, by stage
}

-- Reads the arguments of the change of a record. Returns false if there is no change.
function deciding.take_change()
  local stage = take()
  if stage == '' then return false end
  return { stage = stage, required = take(), new = take(), definitions = take(), chunks = take() }
end

-- Returns the reason why a unit must not decide a group, or nil.
function deciding.refusal_of(group, changes_stage)
  local mark, wrong = mark_of(marks, group)
  wrong = wrong or not_in_group(groups, group)
  if wrong then return wrong end
  -- The record of a stage says whether the pipeline has decided it. So the pipeline can decide a group that the server
  -- or a transaction has decided.
  local was_decided = mark == 'decided' and not deciding.decided[group]
  if deciding.decided[group] then mark = 'decided' end
  if (mark == 'closed' or was_decided and changes_stage)
    and count_in(groups .. group, deciding.unfinished) == 0 then return nil end
  return string.format('%%%s %s', mark, group)
end

-- Returns the reason why a unit must not change the record of a stage, or nil.
function deciding.refusal_of_change(c)
  local record = deciding.records[c.stage] or redis.pcall('HGET', pipelines, c.stage) or ''
  if type(record) == 'table' then return string.format('!redis: WRONGTYPE %s is not a hash', pipelines) end
  if record ~= c.required then return '@' .. string.gsub(string.sub(record, 1, 200), '%c', '?') end
  local must_have = tonumber(c.chunks) -- below 0 if the change removes a chunk
  if must_have and must_have > 0 and redis.pcall('HLEN', c.definitions) ~= must_have then return '?' end
end

function deciding.accept(group, change)
  if group ~= '' then deciding.decided[group] = true end
  if change then deciding.records[change.stage] = change.new end
end

function deciding.apply(group, change)
  if group ~= '' then redis.call('HSET', marks, group, 'decided ' .. now_text) end
  if not change then return end
  if change.new == '' then
    redis.call('HDEL', pipelines, change.stage)
  else
    redis.call('HSET', pipelines, change.stage, change.new)
  end
  -- A stage that will open tasks of stored programs uses them: see use_program in moving.lua.
  for sum in string.gmatch(string.match(change.new, '^stored %d+ %d+ %S+ (.*)') or '', '%x+') do
    redis.pcall('ZADD', beside(groups, 'programs_used'), 'XX', 'GT', now_text, sum)
  end
  local removed = string.match(change.chunks, '^-(%d+)$')
  if removed then
    redis.pcall('HDEL', change.definitions, removed)
  elseif change.definitions ~= '' then
    redis.call('PERSIST', change.definitions)
  end
end

-- Adds ids to the list "ids" of a record in JSON.
function deciding.add_ids(change, ids)
  local record = string.gsub(change.new, '"ids":%[(%]?)', function(closing)
    return '"ids":[' .. ids .. (closing == ']' and ']' or ',')
  end, 1)
  redis.call('HSET', pipelines, change.stage, record)
end
