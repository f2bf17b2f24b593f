package cmd_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/audit"
)

// A site is a namespace in Redis, and a working directory for its workers.
type site struct {
	*testing.T
	ns, addr, dir string
	store         *redisstate.Store
	namespaces    []string // of its workers and servers; nil means only ns
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{T: t, ns: redistest.Namespace(t), addr: redistest.Shared(t), dir: t.TempDir()}
	s.store = connect(t, s.addr, s.ns)
	return s
}

// config writes a configuration file for all components, and returns its path. The arguments give additional lines of the section
// [worker].
func (s *site) config(format string, args ...any) string {
	s.Helper()
	_, port, err := net.SplitHostPort(s.addr)
	must(s, err)
	return write(s.T, "[tdf]\nnamespace=%s\nnamespaces=%s\n[redis]\nhost=127.0.0.1\nport=%s\n[server]\noutage_grace=0\n"+
		"[log]\nlevel=debug\n[worker]\ndirectory=%s\nsleep_after_failure=0\n%s\n", s.ns, strings.Join(s.namespaces, " "),
		port, s.dir, fmt.Sprintf(format, args...))
}

func (s *site) worker(name, format string, args ...any) *process {
	s.Helper()
	return start(s.T, "tdf-worker", name, s.config(format, args...))
}

func (s *site) server() *process {
	s.Helper()
	p := start(s.T, "tdf-server", "s", s.config(""))
	p.logs("msg=serving")
	return p
}

func (s *site) path(parts ...string) string {
	return filepath.Join(append([]string{s.dir}, parts...)...)
}

// program writes the run.sh of a program. It replaces the file atomically, because a worker may be running the program.
func (s *site) program(name, script string) {
	s.Helper()
	must(s, os.MkdirAll(s.path(name), 0o755))
	must(s, os.WriteFile(s.path(name, "new"), []byte(script), 0o755))
	must(s, os.Rename(s.path(name, "new"), s.path(name, "run.sh")))
}

// open opens a task of the program p for each input.
func (s *site) open(inputs ...string) []int64 {
	s.Helper()
	definitions := make([]task.Properties, len(inputs))
	for i, input := range inputs {
		definitions[i] = task.Defaults("p", "rsync:/nowhere/run.sh", input)
		definitions[i].MaxLosses = 1000
	}
	return expect.Result(s.store.Open(s.Context(), "test", definitions...)).Value(s)
}

func (s *site) task(id int64) *task.Task {
	s.Helper()
	stored := expect.Result(s.store.ReadOne(s.Context(), id, redisstate.Want{Fields: redisstate.Whole})).Value(s)
	return stored.Task
}

// succeeded returns the tasks when all of them have succeeded. It checks that no round has two results.
func (s *site) succeeded(ids []int64) []*task.Task {
	s.Helper()
	eventually(s, "all tasks have succeeded", func() bool { return s.count(task.Succeeded) >= int64(len(ids)) })
	stored := expect.Result(s.store.Read(s.Context(), ids, redisstate.Want{Fields: redisstate.Whole})).Value(s)
	var tasks []*task.Task
	for _, x := range stored {
		one := x.Task
		tasks = append(tasks, one)
		expect.Equal(s, one.State, task.Succeeded, "task", one.ID)
		expect.True(s, !executedTwice(one.Log), "task", one.ID, "is", one.State, one.Log)
	}
	return tasks
}

// executedTwice reports whether a task's log contains two results for the same claim.
func executedTwice(log string) bool {
	for round := range strings.SplitSeq(log, ": running\n") {
		if strings.Count(round, ": executed") > 1 {
			return true
		}
	}
	return false
}

func (s *site) count(state task.State) int64 {
	s.Helper()
	counts := expect.Result(s.store.Counts(s.Context())).Value(s)
	return counts[state]
}

// workerField returns a field of a worker's last heartbeat.
func (s *site) workerField(name, field string) string {
	s.Helper()
	client := redistest.Client(s, redis.Options{Addr: s.addr})
	value, err := client.HGet(s.Context(), s.ns+":worker:"+name, field).Result()
	if err != redis.Nil {
		must(s, err)
	}
	return value
}

// pids returns the process ids that programs wrote to the file pids in the working directory.
func (s *site) pids() (pids []int) {
	s.Helper()
	text, _ := os.ReadFile(s.path("pids"))
	for word := range strings.FieldsSeq(string(text)) {
		pid := expect.Result(strconv.Atoi(word)).Value(s)
		pids = append(pids, pid)
	}
	return pids
}

// alive reports whether a program's process still runs. It returns false for a new process that got the same id.
func (s *site) alive(pid int) bool { return s.isOfRound(fmt.Sprintf("/proc/%d", pid)) }

// isOfRound reports whether a process belongs to a round of the site. The argument is the directory of the process in /proc.
func (s *site) isOfRound(process string) bool {
	environ, _ := os.ReadFile(process + "/environ")
	return bytes.Contains(append([]byte{0}, environ...), []byte("\x00TDF_DIR="+s.path(".tdf", ".rounds")+"/"))
}

// remains returns the existing directories and processes of the site's rounds.
func (s *site) remains() (left []string) {
	s.Helper()
	left = expect.Result(filepath.Glob(s.path(".tdf", ".rounds", "*", "*", "*"))).Value(s)
	all := expect.Result(filepath.Glob("/proc/[0-9]*")).Value(s)
	for _, process := range all {
		if s.isOfRound(process) {
			command, _ := os.ReadFile(process + "/cmdline")
			left = append(left, fmt.Sprintf("%s: %q", process, command))
		}
	}
	return left
}

// nothingRemains checks that no directory or process of a round is left, and that all tasks are consistent. Before the call,
// all workers must have ended.
func (s *site) nothingRemains() {
	s.Helper()
	expect.Len(s, s.remains(), 0, "directories and processes of rounds are left")
	for _, pid := range s.pids() {
		expect.True(s, !s.alive(pid), "process", pid, "still runs")
	}
	expect.Len(s, expect.Result(audit.Of(s.store).Check(s.Context())).Value(s), 0)
}

func (p *process) kill() {
	p.Helper()
	p.signal(syscall.SIGKILL)
	<-p.ended
}
