-- Globals of the scripts that Redis runs (docs/development.md).
std = "lua51"
read_globals = { "redis", "KEYS", "cjson" }
globals = { "cursor", "ARGV" } -- scripts change these tables and variables

-- Go puts these files before the source of scripts. So scripts see their top-level locals, and the files themselves do not
-- use all of them.
for _, shared in ipairs({ "redisstate/prelude.lua", "redisstate/places.lua", "redisstate/limiting.lua", "redisstate/starting.lua",
  "redisstate/positions.lua", "redisstate/ordering.lua", "redisstate/opening.lua", "redisstate/endings.lua",
  "redisstate/deciding.lua", "redisstate/needs.lua", "redisstate/moving.lua" }) do
  files[shared] = { ignore = { "211", "241" } }
  local file = io.open(shared)
  if file then
    for line in file:lines() do
      local names = line:match("^local function ([%w_]+)") or line:match("^local ([%w_, ]+)") or ""
      for name in names:gmatch("[%w_]+") do
        if name ~= "cursor" and name ~= "ARGV" then table.insert(read_globals, name) end
      end
    end
    file:close()
  end
end
