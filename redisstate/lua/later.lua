-- later: moves tasks that have become due to the sets from which workers claim them. The server calls it.
--
-- KEYS: open
-- ARGV: the prefix of the keys of tasks, and the largest number of tasks to move
--
-- Returns the number of moved tasks.

use_places(KEYS[1])
return promote(tonumber(ARGV[2]), ARGV[1])
