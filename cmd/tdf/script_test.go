package main

// The scripts in testdata/script/*.txt test tdf: its output, and its exit status. They are written in the language of
// testscript (go doc github.com/rogpeppe/go-internal/testscript): exec, stdin, stdout, stderr, cmp, grep, kill, wait, env, …
// To run one script:
//
//	go test ./cmd/tdf -run TestScripts/open_sweep -v
//
// With -update, cmp writes the output into the script instead of comparing it. Each script has a separate directory, and a
// separate namespace, $NS, in a real Redis at $REDIS. Environment variables TDF_CFG_… make tdf use this namespace and this
// Redis. A script that needs a server and workers must start them. Scripts run in parallel. Besides the commands of testscript,
// there are these commands:
//
//	tdf ARGS…                 runs tdf in the test's process, because a process of its own costs a tenth of a second of
//	                          CPU time; "! tdf …" expects tdf to fail. tdf up gets a process, because it changes its
//	                          umask. "exec tdf …" also runs a process: for signals, pipes and commands in the background
//	status N COMMAND ARGS…    runs a command, which must exit with status N
//	tty COMMAND ARGS…         runs a command on a terminal of 100 × 30. It types the text in stdin at once, followed by
//	                          ^D. stdout gets everything that the terminal showed, with \n at the end of lines.
//	                          If the command runs in the background, "kill -INT tty" types ^C.
//	serve [WORKERS] [SECTION.KEY=VALUE…]
//	                          runs a server and workers (default 1) in the test's process, until the script ends. The
//	                          names of the workers are worker-1 and so on. Their grace is 0, and their directory is
//	                          $WORK/workers. When serve returns, each worker has sent a heartbeat. A short worker.lease makes
//	                          heartbeats frequent. The lease must be longer than a pause of the machine. A pause may take seconds
//	unserve                   ends the server and the workers at once
//	settled                   waits until no task is open, running or executed
//	until REGEXP COMMAND…     repeats a command until its stdout matches, with any exit status
//	redis COMMAND ARGS…       sends a command to Redis, such as redis hgetall $NS:task:1, and prints a line for each value

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/creack/pty"
	"github.com/redis/go-redis/v9"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/fetch/archive"
	"github.com/tdf-framework/tdf/internal/blob"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/leaktest"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/server"
	"github.com/tdf-framework/tdf/internal/testlog"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/worker"
)

var update = flag.Bool("update", false, "update of the scripts: cmp writes the output into the script")

// If the test binary is started under the name tdf, it runs tdf. Under the name tty, it runs a command on a terminal.
func TestMain(m *testing.M) {
	os.Setenv("LC_ALL", "C") // so that programs print English
	if filepath.Base(os.Args[0]) == "tdf" {
		main()
	}
	// Here, a command tdf would hide that of scriptCommands.
	testscript.Main(leaktest.M{M: m}, map[string]func(){"tty": runOnTerminal})
}

// The scripts need about 30 s of CPU time, because most of them start a server and workers, whose tasks are processes.
func TestScripts(t *testing.T) { runScripts(t, "testdata/script") }

// runScripts runs the scripts in a directory. In their $PATH, tdf is a link to the test binary.
func runScripts(t *testing.T, dir string) {
	bin := linked(t)
	testscript.Run(t, testscript.Params{
		Dir:           dir,
		UpdateScripts: *update,
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", bin+string(filepath.ListSeparator)+env.Getenv("PATH"))
			return setUp(env)
		},
		Cmds: scriptCommands,
	})
}

var scriptCommands = map[string]func(*testscript.TestScript, bool, []string){
	"tdf":     scriptTDF,
	"status":  scriptStatus,
	"serve":   scriptServe,
	"unserve": scriptUnserve,
	"settled": scriptSettled,
	"until":   scriptUntil,
	"redis":   scriptRedis,
}

// A world is the state of one script.
type world struct {
	t      testing.TB
	config []config.Override
	client *redis.Client
	stop   func() // ends the server and the workers that serve started
}

type worldKey struct{}

func worldOf(ts *testscript.TestScript) *world { return ts.Value(worldKey{}).(*world) }

func setUp(env *testscript.Env) error {
	t := env.T().(testing.TB)
	addr, namespace := redistest.Shared(t), redistest.Namespace(t)
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	w := &world{t: t, client: redistest.Client(t, redis.Options{Addr: addr}), stop: func() {}}
	env.Defer(func() { w.client.Close() })
	set := func(section, name, value string) {
		w.config = append(w.config, config.Override{Section: section, Name: name, Value: value, Source: "the script"})
	}
	set("redis", "host", host)
	set("redis", "port", port)
	set("tdf", "namespace", namespace)
	for _, o := range w.config {
		env.Setenv("TDF_CFG_"+strings.ToUpper(o.Section+"_"+o.Name), o.Value)
	}
	set("worker", "directory", filepath.Join(env.WorkDir, "workers"))
	set("worker", "grace", "0")
	env.Setenv("REDIS", addr)
	env.Setenv("NS", namespace)
	env.Setenv("NO_COLOR", "1") // scripts that test colours unset this variable
	if env.Getenv("GORACE") == "" {
		env.Setenv("GORACE", "atexit_sleep_ms=0")
	}
	env.Values[worldKey{}] = w
	return nil
}

func scriptStatus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N COMMAND ARGS…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	o := runCommand(ts, args[1:])
	o.write(ts)
	if o.status != want {
		ts.Fatalf("status %d, want %d", o.status, want)
	}
}

func scriptTDF(ts *testscript.TestScript, neg bool, args []string) {
	o := runCommand(ts, append([]string{"tdf"}, args...))
	o.write(ts)
	if neg != (o.status != 0) {
		ts.Fatalf("status %d", o.status)
	}
}

// An output is what a command wrote, and its exit status.
type output struct {
	stdout, stderr string
	status         int
}

// write makes the output that of the script's command.
func (o output) write(ts *testscript.TestScript) {
	io.WriteString(ts.Stdout(), o.stdout)
	io.WriteString(ts.Stderr(), o.stderr)
}

// runCommand runs a command: tdf in this process, except tdf up, and all others in processes.
func runCommand(ts *testscript.TestScript, args []string) output {
	if args[0] == "tdf" && !slices.Contains(args, "up") {
		return runTDF(ts, args[1:])
	}
	status, err := 0, ts.Exec(args[0], args[1:]...)
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		status = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	return output{ts.ReadFile("stdout"), ts.ReadFile("stderr"), status}
}

func runTDF(ts *testscript.TestScript, args []string) output {
	if len(args) > 0 && strings.HasSuffix(args[len(args)-1], "&") {
		ts.Fatalf("only exec tdf runs in the background")
	}
	var stdout, stderr testlog.Buffer
	status := execute(worldOf(ts).t.Context(), cli.Process{
		Stdin: strings.NewReader(takeStdin(ts)), Stdout: &stdout, Stderr: &stderr, Env: environ(ts), Dir: ts.MkAbs("."),
	}, args...)
	return output{stdout.String(), stderr.String(), status}
}

// takeStdin returns the text of the last command stdin, unless a command has already read it. testscript has no method for
// this.
func takeStdin(ts *testscript.TestScript) string {
	text := reflect.ValueOf(ts).Elem().FieldByName("stdin").String()
	if text != "" {
		ts.Check(ts.Exec("true")) // the next command gets no stdin
	}
	return text
}

// environ returns the environment of a script's commands. testscript has a method only for variables whose names are known.
func environ(ts *testscript.TestScript) (all []string) {
	for name, value := range reflect.ValueOf(ts).Elem().FieldByName("envMap").Seq2() {
		all = append(all, name.String()+"="+value.String())
	}
	return all
}

func scriptServe(ts *testscript.TestScript, neg bool, args []string) {
	w, workers := worldOf(ts), 1
	if len(args) > 0 {
		if n, err := strconv.Atoi(args[0]); err == nil {
			workers, args = n, args[1:]
		}
	}
	overrides := w.config
	for _, arg := range args {
		key, value, _ := strings.Cut(arg, "=")
		section, name, _ := strings.Cut(key, ".")
		overrides = append(overrides, config.Override{Section: section, Name: name, Value: value, Source: "serve"})
	}
	tool, err := config.LoadTool("", nil, overrides...)
	ts.Check(err)
	if neg {
		ts.Fatalf("serve cannot fail")
	}
	ts.Check(os.MkdirAll(tool.Worker.Directory, 0o755))
	var log testlog.Buffer
	s := &services{log: slog.New(slog.NewTextHandler(&log, nil))}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	w.stop = sync.OnceFunc(func() {
		s.stop()
		ts.Logf("[serve]\n%s", log.String())
	})
	ts.Defer(w.stop)
	ts.Check(s.start(tool, workers))
	expect.Eventually(w.t, "the first heartbeats", func() bool {
		ns := ts.Getenv("NS")
		seen := w.client.ZCard(context.Background(), ns+":servers").Val() > 0
		for i := range workers {
			state := w.client.HGet(context.Background(), ns+":worker:"+nameOfWorker(i), "state").Val()
			seen = seen && state != "" && state != "starting" && state != "gone" // gone: of an earlier serve
		}
		return seen
	})
}

func nameOfWorker(i int) string { return fmt.Sprintf("worker-%d", i+1) }

func scriptUnserve(ts *testscript.TestScript, _ bool, _ []string) { worldOf(ts).stop() }

// services holds the server and the workers that serve started.
type services struct {
	log    *slog.Logger
	ctx    context.Context
	cancel context.CancelFunc
	ended  sync.WaitGroup
	store  *redisstate.Store // the server's connection to Redis
}

func (s *services) start(tool config.Tool, workers int) error {
	store, err := redisstate.Connect(s.ctx, tool.Manager.Redis, tool.Manager.Namespace, s.log)
	if err != nil {
		return err
	}
	store.Counters.KeepCounts()
	blobs, err := blob.OpenDir(filepath.Join(tool.Worker.Directory, "blobs"), tool.Manager.Namespace)
	if err == nil {
		err = store.Blobs.SetBlobPlace(s.ctx, blobs.ID, blobs.Path)
	}
	if err != nil {
		return err
	}
	s.store = store
	s.run("server", server.New("server", tool.Server, store, s.log).Run)
	for i := range workers {
		name := nameOfWorker(i)
		w, err := worker.New(name, tool.Worker, worker.WithLog(s.log), worker.WithArchives(archive.Compressions()...))
		if err != nil {
			return err
		}
		s.run(name, w.Run)
	}
	return nil
}

func (s *services) run(name string, run func(context.Context) error) {
	s.ended.Go(func() {
		if err := run(s.ctx); err != nil {
			s.log.Error("a component failed", "component", name, "error", err)
		}
	})
}

func (s *services) stop() {
	s.cancel()
	s.ended.Wait()
	if s.store != nil {
		s.store.Close()
	}
}

func scriptSettled(ts *testscript.TestScript, _ bool, _ []string) {
	w, ns, left := worldOf(ts), ts.Getenv("NS"), ""
	defer func() {
		if left != "" {
			ts.Logf("left: %s", left)
		}
	}()
	expect.Eventually(w.t, "the end of all tasks", func() bool {
		left = ""
		tx, sizes := w.client.TxPipeline(), map[string]*redis.IntCmd{} // atomically, because tasks move between the lists
		for _, state := range []string{"open", "open:placed", "running", "executed"} {
			sizes[state] = tx.ZCard(context.Background(), ns+":"+state)
		}
		_, err := tx.Exec(context.Background())
		ts.Check(err)
		for state, size := range sizes {
			if size.Val() > 0 {
				left += fmt.Sprintf("%s %d ", state, size.Val())
			}
		}
		return left == ""
	})
}

func scriptUntil(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until REGEXP COMMAND ARGS…")
	}
	want, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	w, last := worldOf(ts), output{}
	defer func() { last.write(ts) }()
	expect.Eventually(w.t, args[0], func() bool {
		if args[1] == "redis" {
			var err error
			last.stdout, err = w.ask(args[2:])
			return err == nil && want.MatchString(last.stdout)
		}
		last = runCommand(ts, args[1:])
		return want.MatchString(last.stdout)
	})
}

func scriptRedis(ts *testscript.TestScript, neg bool, args []string) {
	reply, err := worldOf(ts).ask(args)
	if err != nil && neg {
		return
	}
	ts.Check(err)
	if neg {
		ts.Fatalf("unexpected success: %s", reply)
	}
	_, err = io.WriteString(ts.Stdout(), reply)
	ts.Check(err)
}

// ask sends a command to Redis and returns the reply, with a line for each value.
func (w *world) ask(args []string) (string, error) {
	words := make([]any, len(args))
	for i, arg := range args {
		words[i] = arg
	}
	reply, err := w.client.Do(context.Background(), words...).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", err
	}
	var b strings.Builder
	writeReply(&b, reply)
	return b.String(), nil
}

func writeReply(b *strings.Builder, reply any) {
	switch reply := reply.(type) {
	case []any:
		for _, r := range reply {
			writeReply(b, r)
		}
	case nil:
		b.WriteString("(nil)\n")
	default:
		fmt.Fprintln(b, reply)
	}
}

// holds is the environment variable of the process that holds a terminal.
const holds = "TDF_TEST_HOLDS_TERMINAL"

// endOfOutput is the last line on a terminal.
const endOfOutput = "\x1e end of output\n"

// runOnTerminal carries out the script command tty. Another process holds the terminal and runs the command, because Linux drops
// what has not been read from a terminal when the process that holds it ends.
func runOnTerminal() {
	if os.Getenv(holds) != "" {
		os.Exit(holdTerminal(os.Args[1], os.Args[2:]...))
	}
	read, written, err := os.Pipe()
	c := exec.Command("/proc/self/exe", os.Args[1:]...)
	c.Args[0] = os.Args[0]
	c.Env, c.ExtraFiles = append(os.Environ(), "TERM=xterm", holds+"=1"), []*os.File{read}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt)
	screen, err2 := pty.StartWithSize(c, &pty.Winsize{Cols: 100, Rows: 30})
	if err = errors.Join(err, err2); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	go typeIn(screen, signals)
	lines := bufio.NewReader(screen)
	for err == nil { // a read fails after the terminal has been closed
		var line string
		line, err = lines.ReadString('\n')
		line, ended := strings.CutSuffix(strings.ReplaceAll(line, "\r\n", "\n"), endOfOutput)
		fmt.Print(line)
		if ended {
			written.Close()
		}
	}
	c.Wait()
	os.Exit(c.ProcessState.ExitCode())
}

// holdTerminal runs a command, and returns its exit status after the terminal's output has been read. ^C is for the command alone.
func holdTerminal(command string, args ...string) int {
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	os.Unsetenv(holds)
	c := exec.Command(command, args...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := c.Run(); c.ProcessState == nil {
		fmt.Println(err)
	}
	fmt.Print(endOfOutput)
	io.Copy(io.Discard, os.NewFile(3, "pipe")) // ends when the other end is closed
	return c.ProcessState.ExitCode()
}

// typeIn types the text from stdin and then ^D. It types ^C for each signal.
func typeIn(keyboard io.Writer, signals <-chan os.Signal) {
	const interrupt, endOfInput = "\x03", "\x04"
	if typed, err := io.Copy(keyboard, os.Stdin); err == nil && typed > 0 {
		io.WriteString(keyboard, endOfInput)
	}
	for range signals {
		io.WriteString(keyboard, interrupt)
	}
}
