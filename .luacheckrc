-- Globals of the scripts that Redis runs (docs/development.md).
std = "lua51"
read_globals = { "redis", "KEYS", "ARGV", "cjson" }
globals = { "cursor" } -- defined in the prelude and changed by scripts

-- The prelude is prepended to every script. So scripts see its top-level locals, and the prelude itself does not use
-- them.
local prelude = "redisstate/prelude.lua"
files[prelude] = { ignore = { "211" } }
local file = io.open(prelude)
if file then
  for line in file:lines() do
    local name = line:match("^local function ([%w_]+)") or line:match("^local ([%w_]+)")
    if name and name ~= "cursor" then table.insert(read_globals, name) end
  end
  file:close()
end
