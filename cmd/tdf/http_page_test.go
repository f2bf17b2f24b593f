package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// The commands of the section "Five minutes" of docs/http.md print the lines that the page shows, with the worker that the page shows. The first command is
// tdf up. Its port, and so the name of the file with the token, are others than on the page.
func TestFiveMinutes(t *testing.T) {
	page := string(expect.Result(os.ReadFile("../../docs/http.md")).Value(t))
	_, section, _ := strings.Cut(page, "\n## Five minutes\n")
	section, _, _ = strings.Cut(section, "\n## ")
	steps := session(section)
	expect.MustTrue(t, len(steps) >= 6, "the page has the commands", steps)
	expect.MustEqual(t, steps[0].command, "tdf up")
	expect.True(t, strings.Contains(steps[1].command, "HEADER=@$HOME/.config/tdf/api-$(hostname)-127.0.0.1:7379"), "the page names the file", steps[1].command)
	expect.True(t, !strings.Contains(page, " -d "), "with -d, curl sends a Content-Type that the API refuses")
	commands, want := "", ""
	for _, s := range steps[2:] {
		commands += s.command + "\n"
		for _, line := range s.output {
			want += line + "\n"
		}
	}
	_, client, _ := strings.Cut(page, "\n## A client in Python\n")
	_, worker, _ := strings.Cut(page, "\n## Workers\n")
	script := fiveMinutes + "-- worker.py --\n" + fenced(t, worker, "python") + "-- client.py --\n" + fenced(t, client, "python") + "-- page.sh --\n" + commands + "-- want --\n" + want
	dir := t.TempDir()
	expect.NoError(t, os.WriteFile(filepath.Join(dir, "http.txt"), []byte(script), 0o644))
	runScripts(t, dir)
}

const fiveMinutes = `env HOME=$WORK/home
env XDG_CONFIG_HOME=
exec shuf -i 30100-31999 -n 1
cp stdout port
exec sh up.sh
cmp stdout want
-- up.sh --
# Tries ports until one is free.
port=$(cat port)
export TDF_CFG_REDIS_HOST=127.0.0.1 TDF_CFG_REDIS_PORT TDF_CFG_HTTP_LISTEN=127.0.0.1:0
while :; do
	export TDF_CFG_REDIS_PORT=$port
	tdf up --workers 1 --directory work 2> up.err &
	up=$!
	while kill -0 $up 2> /dev/null && ! grep -q Ctrl-C up.err; do sleep 0.02; done
	if kill -0 $up 2> /dev/null; then break; fi
	grep -q 'address in use' up.err || { cat up.err; exit 1; }
	port=$((port + 1))
done
export TDF_API=$(sed -n 's:^api  *\(http.*\)/docs;.*:\1:p' up.err)
HEADER=@$HOME/.config/tdf/api-$(hostname)-${TDF_API#http://}
grep -q "curl -H $HEADER " up.err || cat up.err
. ./page.sh
kill $! # the worker
kill -INT $up
wait $up || cat up.err
ls "$HOME/.config/tdf"
`
