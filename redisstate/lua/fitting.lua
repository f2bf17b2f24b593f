-- fitting: common code of claims. It decides which tasks fit in what the worker has free, by the rule of Capacities in
-- capacity.go.
--
-- A request is nil for a task that asks for nothing, if the worker offers no resources. Otherwise it is a list of
-- alternatives, and an alternative is a list of names and units in turn. What is free is a table by name; an element
-- has the fields unit (the units of one index), whole (the number of free indices), and parts (the free units of the
-- other indices, from the smallest up).
--
-- A script calls fitting.use first. Before it chooses a task, it calls fitting.fits. When it has chosen the task, it
-- calls fitting.take, so that one call never hands out more than is free.

local fitting = {}

-- Reads the arguments: what a task that asks for nothing takes; and for each resource its name, unit, whole and parts,
-- and the units that the worker has when it runs nothing.
function fitting.use()
  local plain = take()
  local free, all, n = {}, {}, tonumber(take())
  for _ = 1, n do
    local name, unit, whole, parts = take(), tonumber(take()), tonumber(take()), {}
    for part in string.gmatch(take(), '[^,]+') do parts[#parts + 1] = tonumber(part) end
    free[name] = { unit = unit, whole = whole, parts = parts }
    local units = tonumber(take())
    local rest = units % unit
    all[name] = { unit = unit, whole = math.floor(units / unit), parts = { rest > 0 and rest or nil } }
  end

  local parsed = {}

  -- Reads a request such as 'cpus:10000,memory:5|gpus:10000'.
  function fitting.parse(text)
    local request = parsed[text] or {}
    if parsed[text] then return request end
    for alternative in string.gmatch(text, '[^|]+') do
      local amounts = {}
      for name, units in string.gmatch(alternative, '([^:,]+):(%d+)') do
        amounts[#amounts + 1], amounts[#amounts + 2] = name, tonumber(units)
      end
      request[#request + 1] = amounts
    end
    parsed[text] = request
    return request
  end

  -- Returns what is left of a resource, or nil.
  local function without(of, units)
    local whole, rest = math.floor(units / of.unit), units % of.unit
    local parts, at = { unpack(of.parts) }, nil
    for i = 1, #parts do
      if rest > 0 and not at and parts[i] >= rest then at = i end
    end
    if rest > 0 and not at then
      whole, at = whole + 1, #parts + 1
      parts[at] = of.unit
    end
    if whole > of.whole then return nil end
    if at then
      parts[at] = parts[at] - rest
      if parts[at] == 0 then table.remove(parts, at) end
      table.sort(parts)
    end
    return { unit = of.unit, whole = of.whole - whole, parts = parts }
  end

  -- Returns the resources of the first alternative that fits, as they are afterwards, or nil. The last argument has the
  -- units of each resource that must be left, or is nil.
  local function left_of(request, have, held)
    for _, amounts in ipairs(request) do
      local left = {}
      for i = 1, #amounts, 2 do
        local name, units = amounts[i], amounts[i + 1]
        if left and units > 0 then
          local rest = have[name] and without(have[name], units)
          if rest and held and held[name] and not without(rest, held[name]) then rest = nil end
          left[name] = rest
          if not rest then left = nil end
        end
      end
      if left then return left end
    end
  end

  fitting.plain = n > 0 and fitting.parse(plain) or nil

  local held -- what the claim keeps back for a blocked task: see kept.lua

  -- Keeps back what a request takes: its first alternative that fits when the worker runs nothing. Without a request,
  -- nothing is kept back.
  function fitting.hold(request)
    held = nil
    for _, amounts in ipairs(request or {}) do
      if not held and left_of({ amounts }, all) then
        held = {}
        for i = 1, #amounts, 2 do held[amounts[i]] = amounts[i + 1] end
      end
    end
  end

  function fitting.fits(request) return not request or left_of(request, free, held) ~= nil end

  function fitting.take(request)
    for name, of in pairs(request and left_of(request, free, held) or {}) do free[name] = of end
  end
end
