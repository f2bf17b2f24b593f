-- Globals of the scripts that Redis runs (docs/development.md).
std = "lua51"
read_globals = { "redis", "KEYS", "cjson" }
globals = { "cursor", "answer", "wrong", "ordering", "deciding", "ARGV", "logs", "times", "forgotten", "wrong_move", "properties", "chosen", "wanted" } -- scripts change these tables and variables
local changed = {}
for _, name in ipairs(globals) do changed[name] = true end

-- Go puts some files before the source of scripts, as the table in redisstate/lua/scripts.go says. So scripts see their top-level locals,
-- and the files themselves do not use all of them.
local included = {}
local scripts = io.open("redisstate/lua/scripts.go")
for line in scripts and scripts:lines() or function() end do
  for name in (line:match('After: "([%w ]*)"') or ""):gmatch("%w+") do included["redisstate/lua/" .. name .. ".lua"] = true end
end
for shared in pairs(included) do
  files[shared] = { ignore = { "211", "231", "241", "311" } }
  local file = io.open(shared)
  if file then
    for line in file:lines() do
      local names = line:match("^local function ([%w_]+)") or line:match("^local ([%w_, ]+)") or ""
      for name in names:gmatch("[%w_]+") do
        if not changed[name] then table.insert(read_globals, name) end
      end
    end
    file:close()
  end
end
