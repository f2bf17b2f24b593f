-- fault: notes that a worker could not start a source, or that the source has started (docs/lifecycle.md, "Held
-- programs").
--
-- KEYS: failing, paused, held, wake list of the server
-- ARGV: the name of the source (see sources.lua), the name of the worker, or '' if the source has started; '1' if no
-- other live worker may run the source; the largest number of pauses; the program and the reason, each a short line
--
-- An entry of `failing` has lines: numbers (the time since which the source fails, or is held; the time of the last
-- failure; the number of failures; and if a task has tried the source since then, the time of its claim), the program,
-- the last reason, and up to three workers.
--
-- If two workers could not start a source, or one that is alone could not start it three times, it is held. Failures
-- that are ten minutes apart do not count together.

local failing, paused, held, server = unpack(KEYS)
local sha, worker, alone, most_paused = unpack(ARGV, 1, 4)
local prefix = string.sub(failing, 1, -1 - #'failing')
local APART, MOST_FAILING, FAILURES_ALONE, KEPT_FOR, MOST_WORKERS = 600, 1000, 3, 86400, 3

if worker == '' then return sources.start(prefix, sha) end

-- If `failing` is full, a new source takes the place of one that is not held, because the server reads the held ones.
-- A few random fields suffice to find one, unless nearly all are held.
local function has_room()
  if call('HLEN', failing) < MOST_FAILING then return true end
  for _, field in ipairs(call('HRANDFIELD', failing, 32)) do
    if call('HEXISTS', paused, 'source=' .. field) == 0 then
      call('HDEL', failing, field)
      return true
    end
  end
end

local entry = call('HGET', failing, sha) or ''
local since, last, n = string.match(entry, '^(%S+) (%S+) (%d+)')
local is_held = call('HEXISTS', paused, 'source=' .. sha) == 1
local workers = { worker }
if since and (is_held or now - (tonumber(last) or 0) <= APART) then
  local of_entry = string.match(entry, '^[^\n]*\n[^\n]*\n[^\n]*\n(.*)$') or ''
  for name in string.gmatch(of_entry, '[^\n]+') do
    if name ~= worker and #workers < MOST_WORKERS then workers[#workers + 1] = name end
  end
else
  since, n = now_text, 0
end

local wrong = not_sorted(held)
if wrong then return wrong end
n = n + 1
local holds = not is_held and (#workers > 1 or alone == '1' and n >= FAILURES_ALONE)
if holds and call('HLEN', paused) < tonumber(most_paused) then
  since = now_text
  call('HSET', paused, 'source=' .. sha, now_text .. ' server')
  is_held = true
end
if entry ~= '' or has_room() then
  local head = string.format('%s %s %.0f', since, now_text, n)
  call('HSET', failing, sha, table.concat({ head, ARGV[5], ARGV[6], unpack(workers) }, '\n'))
  call('EXPIRE', failing, KEPT_FOR)
end
-- The server also ends the hold of a source without tasks.
local added = is_held and call('ZADD', held, 'CH', now_text, 'source=' .. sha) or 0
if added == 1 then wake(server, 1) end
