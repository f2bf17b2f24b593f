-- What a script that Redis runs can see (docs/development.md).
std = "lua51"
read_globals = { "redis", "KEYS", "ARGV", "cjson" }
globals = { "cursor" } -- the prelude's, which scripts move

-- The prelude stands before every script: what it defines at its top level is known to all
-- of them, and not used in its own file.
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
