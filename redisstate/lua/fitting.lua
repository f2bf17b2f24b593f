-- fitting: common code of claims. It decides which tasks fit in what the worker has free, by the rule of Capacities in
-- internal/class/capacity.go.
--
-- A request is a list of alternatives, and an alternative has units by resource. It is nil for a task that asks for
-- nothing, if the worker offers no resources. What is free of a resource has the fields unit (the units of one index),
-- whole (the number of free indices), and parts (the free units of the other indices, from the smallest up).

local fitting = {}

-- Reads the arguments: the request that stands for a task that asks for nothing; and for each resource its name, unit,
-- whole and parts.
function fitting.use()
  local plain, free, parsed = take(), {}, {}
  local held = {} -- the units of resources that the claim keeps back for a blocked task: see kept.lua
  for _ = 1, tonumber(take()) do
    local name, of = take(), { unit = tonumber(take()), whole = tonumber(take()), parts = {} }
    for part in string.gmatch(take(), '[^,]+') do table.insert(of.parts, tonumber(part)) end
    free[name] = of
  end

  -- Reads a request such as 'cpus:10000,memory:5|gpus:10000'. Its first alternative fits when the worker runs nothing.
  function fitting.parse(text)
    if parsed[text] then return parsed[text] end
    local request = {}
    for alternative in string.gmatch(text, '[^|]+') do
      local amounts = {}
      for name, units in string.gmatch(alternative, '([^:,]+):(%d+)') do
        if tonumber(units) > 0 then amounts[name] = tonumber(units) end
      end
      table.insert(request, amounts)
    end
    parsed[text] = request
    return request
  end

  -- Returns what is left of a resource, or nil.
  local function without(of, units)
    local whole, rest, parts = math.floor(units / of.unit), units % of.unit, { unpack(of.parts) }
    if rest > 0 then
      local at = 1
      while parts[at] and parts[at] < rest do at = at + 1 end
      if not parts[at] then whole, parts[at] = whole + 1, of.unit end
      parts[at] = parts[at] - rest
      table.sort(parts)
    end
    return whole <= of.whole and { unit = of.unit, whole = of.whole - whole, parts = parts } or nil
  end

  -- Returns what is left of a resource, or nil if too little is left for what the claim keeps back.
  local function rest_of(name, units)
    local rest = free[name] and without(free[name], units)
    return rest and without(rest, held[name] or 0) and rest
  end

  -- Returns the resources of the first alternative that fits, as they are afterwards, or nil.
  local function left_of(request)
    for _, amounts in ipairs(request) do
      local left, fits = {}, true
      for name, units in pairs(amounts) do
        left[name] = rest_of(name, units)
        fits = fits and left[name]
      end
      if fits then return left end
    end
  end

  fitting.plain = next(free) and fitting.parse(plain) or nil

  -- Keeps back what a request takes. Without a request, nothing is kept back.
  function fitting.hold(request) held = request and request[1] or {} end

  function fitting.fits(request) return not request or left_of(request) ~= nil end

  function fitting.take(request)
    for name, of in pairs(request and left_of(request) or {}) do free[name] = of end
  end
end
