package fetch

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/expect"
)

func setup(body string) item { return item{name: "setup.sh", body: "#!/bin/sh\n" + body} }

func TestSetup(t *testing.T) {
	t.Setenv("TDF_CFG_REDIS_PASSWORD", "hush")
	f := newFetcher(t)
	p := fetchWorks(t, f, source(t, setup("test -e run.sh && exit 1; pwd >where; env >env; cat >stdin; cat data >copy"), item{name: "data", body: "x"}, runItem))
	got := snapshot(t, p.Dir)
	expect.Equal(t, got["where"], `-rw-r--r-- "`+p.Dir+`\n"`)
	expect.Equal(t, got["stdin"], `-rw-r--r-- ""`)
	expect.Equal(t, got["copy"], `-rw-r--r-- "x"`)
	expect.NotContains(t, got["env"], "hush")
	expect.Contains(t, got["env"], "PATH=")
}

func TestSetupFails(t *testing.T) {
	tests := []struct{ name, body, want string }{
		{"status", "mkdir made; echo x >results/made; echo one; echo two >&2; exit 3", "setup.sh: exit status 3: one; two"},
		{"silent", "exit 4", "setup.sh: exit status 4, without output"},
		{"signal", "kill -TERM $$", "setup.sh: signal: terminated"},
		{"run.sh", "echo >run.sh", "setup.sh: setup.sh made a run.sh"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			src := source(t, setup(strings.ReplaceAll(tt.body, "results/made", "made/x")), item{name: "data/a", body: "x"}, runItem)
			fetchFails(t, newFetcher(t), src, "x.tar: "+tt.want)
			f := newFetcher(t)
			write(t, f.Dir+"/prog/results/1.out", []byte("kept"))
			fetchFails(t, f, src, "x.tar: "+tt.want)
		})
	}
}

// A failed setup.sh does not take away what others have put into the program's directory meanwhile.
func TestSetupFailsBesideOthers(t *testing.T) {
	for name, dirs := range map[string][]string{"a new directory": nil, "an existing one": {"data"}} {
		t.Run(name, func(t *testing.T) {
			f := newFetcher(t)
			f.Outputs = "results"
			want := map[string]string{"prog": "drwxr-xr-x", "prog/results": "drwxr-xr-x", "prog/results/1.out": `-rw-r--r-- "x\n"`}
			for _, dir := range dirs {
				must(t, os.MkdirAll(f.Dir+"/prog/"+dir, 0o755))
				want["prog/"+dir] = "drwxr-xr-x"
			}
			others := ""
			if os.Geteuid() == 0 {
				others = "echo x >theirs; chown 65534 theirs; "
				want["prog/theirs"] = `-rw-r--r-- "x\n"`
			}
			_, err := f.Fetch(t.Context(), "prog", source(t, setup(others+"mkdir made results; echo x >results/1.out; exit 1"), runItem))
			checkFailed(t, err, "setup.sh: exit status 1")
			checkSame(t, f.Dir, want)
		})
	}
}

func TestSetupCannotBeRun(t *testing.T) {
	for name, body := range map[string]string{"no shebang": "exit 0\n", "CRLF": "#!/bin/sh\r\nexit 0\r\n"} {
		t.Run(name, func(t *testing.T) {
			fetchFails(t, newFetcher(t), source(t, item{name: "setup.sh", body: body}, runItem), "setup.sh: ", "interpreter")
		})
	}
	fetchFails(t, newFetcher(t), source(t, item{name: "setup.sh/x", body: "x"}, runItem), "setup.sh: not a regular file")
}

// A fetch does not run a setup.sh that was in the program's directory before the fetch.
func TestExistingSetupIsNotRun(t *testing.T) {
	f := newFetcher(t)
	write(t, f.Dir+"/prog/setup.sh", []byte("#!/bin/sh\nexit 1\n"))
	fetchWorks(t, f, source(t, runItem))
}

func TestSetupCancelled(t *testing.T) {
	f, out := newFetcher(t), t.TempDir()
	_, err := f.Fetch(endsWith(t, out), "prog", source(t, setup(withProcess(out)), runItem))
	checkFailed(t, err, "x.tar: setup.sh: "+errEnough.Error())
	checkSame(t, f.Dir, map[string]string{})
	checkEnded(t, out+"/pids")
}

func TestSetupTimesOut(t *testing.T) {
	f := newFetcher(t)
	f.Timeout = 300 * time.Millisecond
	fetchFails(t, f, source(t, setup("sleep 600"), runItem), "took longer than 0.3 s")
}

// A fetch kills the background processes of setup.sh, and does not wait for them.
func TestSetupLeavesProcesses(t *testing.T) {
	f, out := newFetcher(t), t.TempDir()
	fetchWorks(t, f, source(t, setup("sleep 600 & echo $! >"+out+"/pids"), runItem))
	checkEnded(t, out+"/pids")
}
