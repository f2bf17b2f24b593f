-- sources: common code for sources that fail to start (docs/lifecycle.md, "Held programs").
--
-- A source is what workers start: the program and the source of a task. It is named by the SHA-1 of both. The hash
-- `failing` has an entry for each source that workers could not start since it last started (internal/task/failing.go).
-- A held source is among the pauses, as `source=SHA1`, so that claims know it and hold its tasks.

local sources = {}

-- Returns the name of the source of a task.
function sources.name_of(program, source) return redis.sha1hex((program or '') .. '\n' .. (source or '')) end

-- Notes that a source has started: it fails no longer, and the server returns its tasks.
function sources.start(prefix, sha)
  redis.pcall('HDEL', prefix .. 'failing', sha)
  if redis.pcall('HDEL', prefix .. 'paused', 'source=' .. sha) == 1 then check_held(prefix, 'source=' .. sha) end
end

-- Notes the starts of tasks, if any source fails: of those whose round has an exit status; without a round, of all.
function sources.note_starts(prefix, ids, round)
  if not ids[1] or redis.pcall('HLEN', prefix .. 'failing') == 0 then return end
  for _, id in ipairs(ids) do
    local f = redis.pcall('HMGET', prefix .. 'task:' .. id, 'program', 'source', (round or '') .. ':exit')
    if not round or f[3] then
      local sha = sources.name_of(f[1], f[2])
      if redis.pcall('HEXISTS', prefix .. 'failing', sha) == 1 then sources.start(prefix, sha) end
    end
  end
end
