package cmd_test

import (
	"bytes"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
)

// A life is a namespace in a new Redis. The test changes it only with commands of TDF and of Redis.
type life struct {
	*testing.T
	addr, dir string
	rdb       *redis.Client
	record    *record

	work   string           // name of the program that most tasks run
	source string           // source of that program
	ids    map[string]int64 // ids of the tasks by their names in this test

	taken map[string]*process // maps the name of a wake list to the process that takes its tokens during this step
}

const namespace = "life"

func newLife(t *testing.T) *life {
	t.Helper()
	l := &life{T: t, addr: redistest.Start(t).Addr, dir: t.TempDir(), ids: map[string]int64{}, taken: map[string]*process{}}
	l.rdb = redistest.Client(t, redis.Options{Addr: l.addr})
	l.record = newRecord(t, l.rdb)
	return l
}

// file writes a file in the test's directory, and returns its path.
func (l *life) file(name, text string, mode os.FileMode) string {
	l.Helper()
	path := filepath.Join(l.dir, name)
	must(l, os.MkdirAll(filepath.Dir(path), 0o755))
	must(l, os.WriteFile(path, []byte(text), mode))
	return path
}

// do sends a command to Redis and returns the reply. An argument "$x" means the key x of the namespace.
func (l *life) do(args ...any) any {
	l.Helper()
	for i, arg := range args {
		if key, ok := arg.(string); ok && strings.HasPrefix(key, "$") {
			args[i] = namespace + ":" + key[1:]
		}
	}
	reply, err := l.rdb.Do(l.Context(), args...).Result()
	if err != redis.Nil {
		must(l, err)
	}
	return reply
}

// get returns the value of a field of a hash, or "" if the field does not exist.
func (l *life) get(key, field string) string {
	l.Helper()
	value, _ := l.do("HGET", key, field).(string)
	return value
}

// id returns the id of the task with the given name. Tasks have names only in this test.
func (l *life) id(name string) string {
	l.Helper()
	expect.MustTrue(l, l.ids[name] != 0, "no task is called", name)
	return strconv.FormatInt(l.ids[name], 10)
}

// key returns the key of a task's hash, as an argument for do.
func (l *life) key(name string) string { return "$task:" + l.id(name) }

// wait waits until a field of a hash has the wanted value.
func (l *life) wait(key, field, want string) {
	l.Helper()
	eventually(l, fmt.Sprintf("%s of %s is %s", field, key, want), func() bool { return l.get(key, field) == want })
}

// awaitKey waits until a key of Redis matches the pattern.
func (l *life) awaitKey(pattern string) {
	l.Helper()
	eventually(l, "a key matches "+pattern, func() bool { return len(l.do("KEYS", pattern).([]any)) > 0 })
}

// awaitState waits until a task is in the given state and in the given round.
func (l *life) awaitState(name, state string, round int) {
	l.Helper()
	l.wait(l.key(name), "round", strconv.Itoa(round))
	l.wait(l.key(name), "state", state)
}

// awaitCount waits until a list contains n tasks.
func (l *life) awaitCount(list string, n int64) {
	l.Helper()
	eventually(l, fmt.Sprintf("%d tasks are %s", n, list), func() bool { return l.do("ZCARD", "$"+list).(int64) == n })
}

// tdf runs the command tdf, checks its exit status, and returns its stdout.
func (l *life) tdf(status int, args ...string) string {
	l.Helper()
	cmd := l.command(args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Run()
	expect.MustEqual(l, cmd.ProcessState.ExitCode(), status, "tdf", args, "exit status", &stdout, &stderr)
	return stdout.String()
}

func (l *life) command(args ...string) *exec.Cmd {
	cmd := exec.Command(built(l.T, "tdf"), append([]string{"--redis", l.addr, "--namespace", namespace}, args...)...)
	cmd.Dir, cmd.Env = l.dir, environment()
	return cmd
}

var printedIDs = regexp.MustCompile(`(?m)^(?:\d+-)?(\d+)$`)

// open runs tdf open. The tasks run the program work, unless --program names another one. The last task gets the given name.
func (l *life) open(name string, args ...string) {
	l.Helper()
	if !slices.Contains(args, "--program") {
		args = append(args, "--program", "work")
	}
	found := printedIDs.FindStringSubmatch(l.tdf(0, append([]string{"open"}, args...)...))
	expect.MustTrue(l, found != nil, "tdf open", args, "printed no ids")
	id := expect.Result(strconv.ParseInt(found[1], 10, 64)).Value(l)
	l.ids[name] = id
}

// hand runs a command of tdf on tasks. In the command, {x} means the id of the task with the name x.
func (l *life) hand(command string) {
	l.Helper()
	args := strings.Fields(command)
	for i, arg := range args {
		if strings.HasPrefix(arg, "{") {
			args[i] = l.id(strings.Trim(arg, "{}"))
		}
	}
	l.tdf(0, append(args, "--yes")...)
}

// openByHand opens a task with the same Redis commands as a manager of the original TDF.
func (l *life) openByHand(name string, fields ...any) {
	l.Helper()
	l.ids[name] = l.do("INCR", "$task_id").(int64)
	l.do(append([]any{
		"HSET", l.key(name), "id", l.id(name), "namespace", namespace, "program", "old", "source", "rsync:/nowhere/run.sh", "input", "",
		"start_after", "0", "end_before", "inf", "timeout", "inf", "max_fails", "0", "max_timeouts", "0",
		"state", "open", "round", "0", "fails", "0", "timeouts", "0", "log", "", "0:open", began,
	}, fields...)...)
	l.do("ZADD", "$open", "0", l.id(name))
}

// claimByHand opens a task. Then it claims the task in the same way as a worker of the original TDF.
func (l *life) claimByHand(name string, fields ...any) {
	l.Helper()
	l.openByHand(name, fields...)
	l.moveByHand(name, "open", "running")
	l.do("HSET", l.key(name), "state", "running", "0:running", began, "0:worker", "theirs")
}

func (l *life) commitByHand(name, stderr string) {
	l.Helper()
	l.moveByHand(name, "running", "executed")
	l.do("HSET", l.key(name), "state", "executed", "0:executed", began, "0:output", "out", "0:error", stderr)
}

func (l *life) moveByHand(name, from, to string) {
	l.Helper()
	l.do("ZREM", "$"+from, l.id(name))
	l.do("ZADD", "$"+to, began, l.id(name))
}

// step runs a step and adds it to the record. The record lists a wake token only if the step has added the token and no
// component takes it.
func (l *life) step(title string, step func()) {
	l.Helper()
	l.do("DEL", "$wake:open", "$wake:server")
	maps.DeleteFunc(l.taken, func(_ string, by *process) bool { return by.hasEnded() })
	for name := range l.record.last.values {
		if strings.HasPrefix(name, "wake:") {
			delete(l.record.last.values, name)
		}
	}
	began := time.Now()
	step()
	l.Logf("%.1f s: %s", time.Since(began).Seconds(), title)
	l.record.note(title, l.record.snapshot(namespace, l.taken))
}

// config writes a configuration file for all components, and returns its path. The arguments are additional lines for the
// sections [server] and [worker].
func (l *life) config(server, worker string) string {
	l.Helper()
	_, port, err := net.SplitHostPort(l.addr)
	must(l, err)
	return write(l.T, "[tdf]\nnamespace=%s\n[redis]\nhost=127.0.0.1\nport=%s\n[server]\nround_duration=0.1\noutage_grace=0\n%s\n"+
		"[worker]\ndirectory=%s\nenv_file=secrets\ngrace=0\nsleep_after_failure=0\nsleep_after_no_process_claimed=0.05\n%s\n",
		namespace, port, server, filepath.Join(l.dir, "workers"), worker)
}

// worker starts a worker, and waits until it claims tasks or is drained. While no server runs, no task is
// settled as lost, even if the worker's lease is short.
func (l *life) worker(name, config string) *process {
	l.Helper()
	hash := "$worker:" + name
	before := l.get(hash, "boot")
	p := start(l.T, "tdf-worker", name, l.config("", config))
	l.taken["wake:open"] = p
	eventually(l, name+" works", func() bool {
		expect.MustTrue(l, !p.hasEnded(), p.cmd, "has ended", p.stderr.String())
		state := l.get(hash, "state")
		return l.get(hash, "boot") != before && (state == "working" || state == "draining")
	})
	return p
}

// awaitSuccess waits until Redis contains a worker's report that a program has succeeded on this worker. The report
// must not be older than the given time. A worker updates its report once a minute.
func (l *life) awaitSuccess(name, program string, since float64) {
	l.Helper()
	eventually(l, name+" reports its success", func() bool {
		score, err := l.rdb.ZScore(l.Context(), namespace+":successes:"+program, name).Result()
		return err == nil && score >= since
	})
}

func (l *life) now() float64 {
	l.Helper()
	now := expect.Result(l.rdb.Time(l.Context()).Result()).Value(l)
	return float64(now.UnixMicro()) / 1e6
}

// forgetPositions removes the keys passed:*. A claim stores there the position up to which it has skipped tasks. The positions
// depend on the number of claims, which differs between two runs.
func (l *life) forgetPositions() {
	l.Helper()
	for _, key := range l.do("KEYS", "$passed:*").([]any) {
		l.do("DEL", key)
	}
}

// server starts a server, and waits until it serves. It deletes the list of servers first, so that the new server begins no
// grace period.
func (l *life) server(config string) *process {
	l.Helper()
	l.do("DEL", "$servers")
	p := start(l.T, "tdf-server", "s", l.config(config, ""))
	l.taken["wake:server"] = p
	eventually(l, "the server serves", func() bool {
		expect.MustTrue(l, !p.hasEnded(), p.cmd, "has ended", p.stderr.String())
		return l.do("ZCARD", "$servers").(int64) > 0
	})
	return p
}

func (l *life) stop(all ...*process) {
	l.Helper()
	for _, p := range all {
		p.signal(syscall.SIGTERM)
	}
	for _, p := range all {
		p.exits(0, "")
	}
}

// awaitRun waits until a worker runs the program of a task, and until the worker's heartbeat and lease renewal have
// reported the run.
func (l *life) awaitRun(worker, name string, round int) {
	l.Helper()
	l.awaitState(name, "running", round)
	l.wait(l.key(name), fmt.Sprintf("%d:tail", round), "begun\n")
	eventually(l, "Redis contains the id of the process", func() bool { return l.get(l.key(name), fmt.Sprintf("%d:pid", round)) != "" })
	l.wait("$worker:"+worker, "runs", l.id(name))
}
