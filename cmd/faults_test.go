package cmd_test

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/task"
)

const eight = 8

// A worker of two namespaces is killed while it runs tasks of the same id. The next worker of its name ends both
// programs, keeps both outputs, and runs both tasks again.
func TestKilledWorkerOfTwoNamespaces(t *testing.T) {
	s := newSite(t)
	other := *s
	other.ns = redistest.Namespace(t)
	other.store = connect(t, s.addr, other.ns)
	s.namespaces = []string{s.ns, other.ns}
	for _, ns := range s.namespaces {
		s.program(ns+"/p", "#!/bin/sh\necho of $TDF_NAMESPACE\necho $$ >>../../pids\nuntil [ -e ../../go ]; do sleep 0.01; done\n")
	}
	ids := s.open("")
	expect.Equal(t, other.open(""), ids)
	worker := s.worker("w", "concurrency=%s:1,%s:1", s.ns, other.ns)
	eventually(t, "both tasks run", func() bool { return len(s.pids()) == 2 })
	worker.kill()
	worker, server := s.worker("w", ""), s.server()
	eventually(t, "both tasks run again", func() bool { return len(s.pids()) == 4 })
	must(t, os.WriteFile(s.path("go"), nil, 0o644))
	for _, of := range []*site{s, &other} {
		one := of.succeeded(ids)[0]
		expect.Equal(t, one.Losses, 1)
		expect.Equal(t, one.LastOutput(), "of "+of.ns+"\n")
		kept := expect.Result(os.ReadFile(s.path(of.ns, "p", "results", "w-1-0.out"))).Value(t)
		expect.Equal(t, string(kept), "of "+of.ns+"\n")
		worker.logs("msg=executed worker=w namespace=" + of.ns)
		server.logs("msg=serving server=s namespace=" + of.ns)
	}
	for _, p := range []*process{worker, server} {
		p.signal(syscall.SIGTERM)
		p.exits(0, "msg=stopped")
	}
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
	eventually(t, "all tasks are open again", func() bool { return s.count(task.Open) == eight })
	own := *s
	own.dir = t.TempDir()
	own.program("p", "#!/bin/sh\necho other\n")
	other := own.worker("other", "")
	for _, one := range s.succeeded(ids) {
		r := one.Rounds.At(0)
		expect.Equal(t, one.Losses, 1)
		expect.Equal(t, r.Output+r.Exit, "")
		expect.Equal(t, one.LastOutput(), "other\n")
	}
	other.signal(syscall.SIGTERM)
	other.exits(0, "msg=stopped")
	sleeper.signal(syscall.SIGCONT)
	eventually(t, "the worker drops all results", func() bool { return sleeper.stderr.Count("msg=dropped") == eight })
	for _, one := range s.succeeded(append(ids, s.open("")...)) { // the resumed worker also runs a new task
		want := map[bool]string{true: "other\n", false: "sleeper\n"}[one.ID <= eight]
		expect.True(t, one.LastOutput() == want, "task", one.ID, one.LastOutput())
	}
	sleeper.signal(syscall.SIGTERM)
	sleeper.exits(0, "msg=stopped")
	s.nothingRemains()
}

func TestUnavailableIsolation(t *testing.T) {
	s := newSite(t)
	for more, want := range map[string]string{
		"user=no-such-user": `[worker] user: user "no-such-user": there is no such user on this machine`,
	} {
		p := s.worker("w", "%s", more)
		p.exits(2, want)
		expect.Equal(t, s.workerField("w", "state"), "", more, "the worker has the state")
	}
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
			eventually(t, "all tasks have run", func() bool { return s.count(task.Failed) == 2*eight }) // they print to stderr
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
