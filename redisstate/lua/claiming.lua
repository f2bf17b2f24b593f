-- claiming: common code of claims. It reads the first arguments, and hands out the tasks that claim.lua chooses.

local due, running, open = KEYS[2], KEYS[3], KEYS[5]
local tasks, groups, code, worker = unpack(ARGV, 3, 6)
local wanted, lease, random, margin = ARGV[7] + 0, ARGV[8], ARGV[9], ARGV[11]
local LOG, INPUT, NOT_ON, SOURCE, META, BLOBS = 7, 9, 10, 11, 12, 13 -- indexes of properties
local properties = { unpack(ARGV, 18, 17 + ARGV[17]) }
local PREFETCHED = #properties - 5
local lease_until = now + lease
local lease_text = string.format('%.6f', lease_until)

-- A worker with short runs asks for more tasks than it has free slots, and prefetches the others (docs/lifecycle.md,
-- "Prefetched tasks"). The first `needed` tasks start at once. A worker prefetches at most half of its share of the
-- open tasks, so that the last tasks are spread over all workers.
local needed = wanted
local function prefetch(n_open)
  local most = ARGV[14] + 0
  if most == 0 then return end
  local live = redis.pcall('ZCOUNT', KEYS[8], now - 300, '+inf') -- an error reply if the key is not a sorted set
  local share = (n_open - needed) / (2 * math.max(type(live) == 'number' and live or 1, 1))
  wanted = needed + math.max(0, math.floor(math.min(most, share)))
end

-- These lists have an element for each claimed task, and the last two have two: its id, the task of the reply, the text
-- of its deadline, and its new entries in `running` and `due`.
local ids, chosen, deadlines, entered, looks = {}, {}, {}, {}, {}
local bytes = ARGV[10] + 0 -- the bytes that the next tasks may have

-- Chooses a task with the given values of its properties. A field `queue` of its element in `chosen` names its queue.
local function choose(id, f, end_before, timeout)
  bytes = bytes - #(f[INPUT] or '') - #(f[SOURCE] or '') - #(f[META] or '') - #(f[BLOBS] or '')
  local n, deadline, look_text = #ids + 1, 'inf', lease_text
  if end_before < INF or timeout < INF then
    local over, look = now + timeout, end_before
    if over < end_before then end_before, look = over, math.min(end_before, over + margin) end
    deadline = text(end_before)
    if look < lease_until then look_text = text(look) end
  end
  if n > needed then f[PREFETCHED] = '1' elseif f[PREFETCHED] then f[PREFETCHED] = '' end
  ids[n], chosen[n], deadlines[n] = id, { id, random .. '.' .. n, f }, deadline
  entered[2 * n - 1], entered[2 * n] = now_text, id
  looks[2 * n - 1], looks[2 * n] = look_text, id
end

-- Writes the lists of the chosen tasks. Returns an error reply if the list `running` has a wrong type, or if Redis is
-- full. Then the script has written nothing.
local function write_lists()
  local wrong = bulk('ZADD', running, entered, try)
  if wrong then return not_sorted(running) or wrong end
  bulk('ZADD', due, looks)
end

-- Writes the hashes of the chosen tasks, and removes the logs from the reply.
local function write_hashes()
  local line = now_text .. ' ' .. worker .. ': running'
  local write = {
    '', 'state', 'running', 'lease_until', lease_text, 'lease', lease, 'deadline', '', 'log', '',
    '', now_text, '', worker, '', '', -- properties of the round: running, worker and claim
    '0:prefetched', '',
  }
  local round
  for i = 1, #ids do
    local task = chosen[i]
    local id, f = ids[i], task[3]
    local log, names = f[LOG], names_of(f[6], task.queue)
    if f[2] ~= round then
      round = f[2]
      local of = (round or '0') .. ':'
      write[12], write[14], write[16] = of .. 'running', of .. 'worker', of .. 'claim'
    end
    if not log or log == '' or #log > 2000 then log = logged(log, line) else log = log .. '\n' .. line end
    write[1], write[9], write[11], write[17] = tasks .. id, deadlines[i], log, task[2]
    f[LOG] = ''
    write[19] = f[PREFETCHED]
    call('HSET', unpack(write, 1, write[19] and 19 or 17))
    if names ~= '' then enter_indexes(groups, names, code, id) end
  end
  finish_indexes()
end
