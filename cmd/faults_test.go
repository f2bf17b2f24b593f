package cmd_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/redisstate"
)

const eight = 8

// family is a program that starts two child processes. One of them runs in another session.
const family = `#!/bin/sh
setsid sleep 1000 &
sleep 1000 &
echo $! $$ >>../pids
exec sleep 1000
`

// A worker is killed while all its slots are busy. After its restart, the worker kills the processes and removes the directories
// of the interrupted rounds.
func TestKilledWorkerIsRestarted(t *testing.T) {
	s := newSite(t)
	s.program("p", family)
	ids := s.open(make([]string, eight)...)
	killed := s.worker("w", "concurrency=%d\nlease=10000", eight)
	eventually(t, "all slots are busy", func() bool { return len(s.pids()) == 2*eight })
	before := expect.Result(filepath.Glob(s.path(".tdf/.rounds/*/*/[0-9]*"))).Value(t)
	expect.Len(t, before, eight, "directories of rounds")
	for _, pid := range s.pids() {
		eventually(t, "the process runs", func() bool { return s.alive(pid) })
	}
	killed.kill()
	for i, pid := range s.pids() {
		if i%2 == 1 {
			eventually(t, "run.sh has ended", func() bool { return !s.alive(pid) })
		}
	}
	s.program("p", "#!/bin/sh\necho again\n")
	again := s.worker("w", "concurrency=%d\nlease=10000", eight)
	again.logs("msg=working")
	expect.Len(t, s.remains(), 0, "left by the killed worker")
	again.logs(fmt.Sprintf("tasks of an earlier worker of this name are lost\" worker=w tasks=%d", eight))
	s.server()
	for _, task := range s.succeeded(ids) {
		expect.Equal(t, task.Losses, 1)
		expect.Equal(t, task.Round, 1)
		expect.Equal(t, task.LastOutput(), "again\n")
	}
	again.signal(syscall.SIGTERM)
	again.exits(0, "msg=stopped")
	s.nothingRemains()
}

// A worker is suspended for longer than its lease. Then another worker runs the tasks of the suspended worker.
func TestWorkerSleepsThroughItsLease(t *testing.T) {
	s := newSite(t)
	s.program("p", "#!/bin/sh\necho $$ >>../pids\nuntil [ -e ../go ]; do sleep 0.01; done\necho sleeper\n")
	ids := s.open(make([]string, eight)...)
	sleeper := s.worker("sleeper", "concurrency=%d\nlease=0.6", eight)
	eventually(t, "all slots are busy", func() bool { return len(s.pids()) == eight })
	sleeper.signal(syscall.SIGSTOP)
	must(t, os.WriteFile(s.path("go"), nil, 0o644))
	for _, pid := range s.pids() {
		eventually(t, "the programs have ended", func() bool { return !s.alive(pid) })
	}
	s.server()
	eventually(t, "all tasks are open again", func() bool { return s.count(tdf.Open) == eight })
	own := *s
	own.dir = t.TempDir()
	own.program("p", "#!/bin/sh\necho other\n")
	other := own.worker("other", "")
	for _, task := range s.succeeded(ids) {
		r := task.Rounds.At(0)
		expect.Equal(t, task.Losses, 1)
		expect.Equal(t, r.Output+r.Exit, "")
		expect.Equal(t, task.LastOutput(), "other\n")
	}
	other.signal(syscall.SIGTERM)
	other.exits(0, "msg=stopped")
	sleeper.signal(syscall.SIGCONT)
	eventually(t, "the worker drops all results", func() bool { return sleeper.stderr.Count("msg=dropped") == eight })
	for _, task := range s.succeeded(append(ids, s.open("")...)) { // the resumed worker also runs a new task
		want := map[bool]string{true: "other\n", false: "sleeper\n"}[task.ID <= eight]
		expect.True(t, task.LastOutput() == want, "task", task.ID, task.LastOutput())
	}
	sleeper.signal(syscall.SIGTERM)
	sleeper.exits(0, "msg=stopped")
	s.nothingRemains()
}

func TestSecondWorkerOfTheName(t *testing.T) {
	s := newSite(t)
	first := s.worker("w", "")
	first.logs("msg=working")
	second := s.worker("w", "")
	second.exits(2, "")
	host := expect.Result(os.Hostname()).Value(t)
	want := fmt.Sprintf(`^tdf-worker: .*the worker's name w belongs to a worker on host %s, pid %d, last seen \d+\.\d s ago`,
		regexp.QuoteMeta(host), first.cmd.Process.Pid)
	last := lastLine(second.stderr.String())
	expect.True(t, regexp.MustCompile(want).MatchString(last), last, "want", want)
	first.signal(syscall.SIGTERM)
	first.exits(0, "msg=stopped")
	third := s.worker("w", "")
	third.logs("msg=working")
}

// If a worker sends no heartbeat for longer than its lease, a second worker can take its name. Then the first worker ends.
func TestWorkerFindsItsNameTaken(t *testing.T) {
	s := newSite(t)
	s.program("p", family)
	s.open("")
	first := s.worker("w", "lease=0.6\ngrace=inf")
	eventually(t, "the program runs", func() bool { return len(s.pids()) == 2 })
	first.signal(syscall.SIGSTOP)
	own := *s
	own.dir = t.TempDir()
	var second *process
	eventually(t, "the name is free", func() bool {
		second = own.worker("w", "lease=600")
		eventually(t, "the second worker works or ends", func() bool {
			return second.hasEnded() || strings.Contains(second.stderr.String(), "msg=working")
		})
		return strings.Contains(second.stderr.String(), "msg=working")
	})
	first.signal(syscall.SIGCONT)
	first.exits(2, "another worker has taken the name: all programs are ended")
	s.nothingRemains()
	expect.Equal(t, s.workerField("w", "pid"), strconv.Itoa(second.cmd.Process.Pid), "process … has the name")
}

func TestUnavailableIsolation(t *testing.T) {
	s := newSite(t)
	for more, want := range map[string]string{
		"require=memory, nice\nnice=1": "[worker] require: required isolation is unavailable: memory (none is set)",
		"user=no-such-user":            `[worker] user: user "no-such-user": there is no such user on this machine`,
		"require=gpu":                  `[worker] require: "gpu"`,
		"collect=rsync:relative":       "[worker] collect: ",
	} {
		p := s.worker("w", "%s", more)
		p.exits(2, want)
		expect.Equal(t, s.workerField("w", "state"), "", more, "the worker has the state")
	}
}

// Redis contains the current state of a worker at every time from the worker's start to its end.
func TestStatesOfWorker(t *testing.T) {
	s := newSite(t)
	line := redistest.NewProxy(t, s.addr)
	away := *s
	away.addr = line.Addr
	s.program("p", "#!/bin/sh\ntrap '' TERM\necho $$ >>../pids\nwhile :; do sleep 1000; done\n")
	ids := s.open("", "")
	is := func(want string) {
		t.Helper()
		eventually(t, "the worker is "+want, func() bool { return s.workerField("w", "state") == want })
	}
	// Load the script of TakeName into Redis now. If the script were missing, Redis would first reply that it does not
	// know the script, and the proxy would drop that reply.
	_, _, err := s.store.TakeName(t.Context(), redisstate.WorkerInfo{Name: "other", State: "gone", Lease: 1}, redisstate.PriorOwner{})
	must(t, err)
	line.DropReplies(1<<30, func(command []string) bool { return strings.Contains(strings.Join(command, "\n"), "\nstarting\n") })
	worker := away.worker("w", "lease=0.6\ngrace=inf\nkill_grace=10000")
	is("starting")
	line.Resume()
	is("working")
	eventually(t, "the program runs", func() bool { return len(s.pids()) == 1 })
	eventually(t, "a heartbeat counts the run", func() bool { return s.workerField("w", "runs") == "1" })
	worker.signal(syscall.SIGTERM)
	is("draining")
	expect.Equal(t, s.task(ids[0]).State, tdf.Running, "the task")
	worker.signal(syscall.SIGINT)
	worker.exits(0, "released")
	is("gone")
	for i, id := range ids {
		task := s.task(id)
		expect.Equal(t, task.State, tdf.Open)
		expect.Equal(t, task.Releases, 1-i)
		expect.Equal(t, task.Losses, 0)
	}
	s.nothingRemains()
}

// In each slot, a program writes a gigabyte to stdout and a gigabyte to stderr. The worker needs little memory, even if it masks secrets.
func TestMemoryOfWorker(t *testing.T) {
	const limit = 64 << 20
	for name, more := range map[string]string{"plain": "", "with secrets": "env_file=secrets"} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			must(t, os.WriteFile(s.path("secrets"), []byte("TOKEN=8c1f-0a7e\n"), 0o600))
			s.program("p", `#!/bin/sh
for fd in 1 2; do
	truncate -s 1G /proc/self/fd/$fd
	head -c 10000000 /dev/zero | tr '\0' x >&$fd
done
`)
			worker := s.worker("w", "concurrency=%d\n%s", eight, more)
			worker.logs("msg=working")
			idle := peak(t, worker.cmd.Process.Pid)
			ids := s.open(make([]string, 2*eight)...)
			eventually(t, "all tasks are executed", func() bool { return s.count(tdf.Executed) == 2*eight })
			busy := peak(t, worker.cmd.Process.Pid)
			t.Logf("%.1f MiB idle, %.1f MiB at most", float64(idle)/(1<<20), float64(busy)/(1<<20))
			expect.True(t, busy-idle <= limit, "the busy worker needs", busy-idle, "bytes more than the idle one")
			for _, id := range ids {
				r := s.task(id).Current()
				expect.Equal(t, r.OutputBytes, 1<<30+10_000_000)
				expect.Equal(t, r.ErrorBytes, r.OutputBytes)
			}
			worker.signal(syscall.SIGTERM)
			worker.exits(0, "msg=stopped")
		})
	}
}

// peak returns the peak memory of a process in bytes.
func peak(t *testing.T, pid int) int64 {
	t.Helper()
	text := expect.Result(os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))).Value(t)
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	var kb int64
	expect.Result(fmt.Sscan(rest, &kb)).OK(t)
	return kb << 10
}
