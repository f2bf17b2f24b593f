package process

import (
	"bufio"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/testlog"
)

var (
	until = expect.Eventually
	must  = expect.NoError
)

// programs are functions that the test binary can run instead of tests. A test starts them by their names.
var programs = map[string]func(args []string){
	// host runs a script as a program, and prints its output.
	"host": func(args []string) {
		h, err := New(Config{Name: "host", Sole: true})
		if err != nil {
			panic(err)
		}
		mark := "TDF_DIR=/nowhere/" + strconv.Itoa(os.Getpid())
		p, err := h.Start(Command{Path: "/bin/sh", Args: []string{"-c", args[0]}, Env: []string{mark}, Mark: mark, Stdout: os.Stdout, Stderr: os.Stderr})
		if err != nil {
			panic(err)
		}
		<-p.Done()
		fmt.Println("exit", p.Ended().Exit, "lingered", p.Ended().Lingered)
		if err := h.Close(); err != nil {
			panic(err)
		}
	},
	// bomb forks up to a limit of 30 processes, each in a session of its own. The limit does not bind root. Each
	// process prints a line when it reaches the limit.
	"bomb": func([]string) {
		if os.Getuid() == 0 || unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: 30, Max: 30}) != nil {
			os.Exit(9)
		}
		signal.Ignore(syscall.SIGTERM)
		// At the limit, each process sleeps for a moment before it tries again. Linux shares the CPU between sessions,
		// whatever their priority, so 30 busy sessions leave a thirtieth of it for all other tests.
		moment := unix.Timespec{Nsec: 100_000}
		line, printed := []byte("full\n"), false
		for {
			pid, _, err := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
			switch {
			case err != 0 && !printed:
				_, _, _ = syscall.RawSyscall(syscall.SYS_WRITE, 1, uintptr(unsafe.Pointer(&line[0])), uintptr(len(line)))
				printed = true
			case err == 0 && pid == 0:
				_, _, _ = syscall.RawSyscall(syscall.SYS_SETSID, 0, 0, 0)
			}
			if err != 0 {
				_, _, _ = syscall.RawSyscall(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&moment)), 0, 0)
			}
		}
	},
}

// keepOwn marks inherited descriptors close-on-exec. It also makes Go open the descriptors that Go needs for waiting,
// before a test counts descriptors.
func keepOwn() {
	_ = unix.CloseRange(3, 1<<30, unix.CLOSE_RANGE_CLOEXEC)
	if r, w, err := os.Pipe(); err == nil {
		r.Close()
		w.Close()
	}
}

// bothWays runs a test with and without cgroups.
func bothWays(t *testing.T, test func(t *testing.T, s *site)) {
	t.Run("cgroup", func(t *testing.T) {
		s := newSite(t, true, Config{})
		if s.host.cgroups == nil {
			t.Skip("no cgroup v2 on this machine: ", s.host.noGroup)
		}
		test(t, s)
	})
	t.Run("no cgroup", func(t *testing.T) { test(t, newSite(t, false, Config{})) })
}

// A site is a Host for a test.
type site struct {
	t    *testing.T
	host *Host
	dir  string
}

// newSite makes a Host. At the end of the test, it checks that nothing remains.
func newSite(t *testing.T, cgroups bool, cfg Config) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir()}
	for _, dir := range []string{s.dir, filepath.Dir(s.dir)} { // open to all users, because programs may run as other users
		must(t, os.Chmod(dir, 0o755))
	}
	before := descriptors(t)
	cfg.Name, cfg.Log = t.Name(), testlog.Of(t)
	if cfg.LingerGrace == nil {
		cfg.LingerGrace = func() <-chan time.Time { return nil }
	}
	host := expect.Result(newHost(cfg, cgroups)).Value(t)
	s.host = host
	t.Cleanup(func() {
		dir := ""
		if host.cgroups != nil {
			dir = host.cgroups.dir
		}
		expect.NoError(t, host.Close())
		if _, err := os.Stat(dir); dir != "" && !os.IsNotExist(err) {
			t.Errorf("the cgroup %s remains: %v", dir, err)
		}
		s.nothingLeft()
		after := descriptors(t)
		expect.True(t, len(after) <= len(before), "descriptors", after, "and before", before)
	})
	return s
}

// nothingLeft checks that this process has no child, not even one to reap, and that no process has a mark of this
// site.
func (s *site) nothingLeft() {
	s.t.Helper()
	all, err := snapshot()
	must(s.t, err)
	for _, pr := range all {
		expect.NotEqual(s.t, pr.ppid, os.Getpid())
	}
	noneMarked(s.t, "TDF_DIR="+s.dir)
	ours.mu.Lock()
	defer ours.mu.Unlock()
	expect.Equal(s.t, len(ours.programs)+len(ours.marks)+len(ours.groups)+ours.sole+ours.holds, 0, "the family still has processes", ours)
}

func noneMarked(t *testing.T, mark string) {
	t.Helper()
	marked := expect.Result(withMark([]byte(mark), nil)).Value(t)
	for _, pr := range marked {
		t.Errorf("a process remains: %+v: %s", pr, commandLine(pr.pid))
	}
}

func commandLine(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return strings.ReplaceAll(string(text), "\x00", " ")
}

// descriptors returns the target of each descriptor of this process.
func descriptors(t *testing.T) []string {
	t.Helper()
	entries := expect.Result(os.ReadDir("/proc/self/fd")).Value(t)
	all := make([]string, len(entries))
	for i, e := range entries {
		all[i], _ = os.Readlink("/proc/self/fd/" + e.Name())
	}
	return all
}

// A run is a started program, with its output.
type run struct {
	*Process
	s   *site
	out string
}

// start starts a program with a mark that no other program has.
func (s *site) start(cmd Command) *run {
	s.t.Helper()
	r, err := s.tryStart(cmd)
	must(s.t, err)
	return r
}

func (s *site) tryStart(cmd Command) (*run, error) {
	s.t.Helper()
	dir, err := os.MkdirTemp(s.dir, "run")
	must(s.t, err)
	must(s.t, os.Chmod(dir, 0o777))
	out, err := os.Create(filepath.Join(dir, "out"))
	must(s.t, err)
	defer out.Close()
	must(s.t, os.Chmod(out.Name(), 0o666))
	cmd.Mark = "TDF_DIR=" + dir
	cmd.Env = append(cmd.Env, cmd.Mark, "PATH="+os.Getenv("PATH"))
	if cmd.Dir == "" {
		cmd.Dir = dir
	}
	cmd.Stdout, cmd.Stderr = out, out
	p, err := s.host.Start(cmd)
	return &run{p, s, out.Name()}, err
}

func (s *site) sh(script string) *run {
	s.t.Helper()
	return s.start(Command{Path: "/bin/sh", Args: []string{"-c", script}})
}

// program starts the function of that name in programs as a process.
func (s *site) program(name string, args ...string) *run {
	s.t.Helper()
	return s.start(Command{Path: "/proc/self/exe", Args: args, Env: []string{"TDF_TEST_PROGRAM=" + name, "GOMAXPROCS=1", "GORACE=atexit_sleep_ms=0"}})
}

func (r *run) wait() Ended {
	r.s.t.Helper()
	<-r.Done()
	if r.group != nil {
		below, _ := filepath.Glob(r.group.dir + "/*/")
		expect.True(r.s.t, len(below) == 0, "cgroups below its cgroup remain", below)
	}
	noneMarked(r.s.t, r.cmd.Mark)
	return r.Ended()
}

// end ends the program at once, and waits for its end.
func (r *run) end() Ended {
	r.s.t.Helper()
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		r.End(over(), nil)
	}()
	ended := r.wait()
	<-returned
	return ended
}

func (r *run) printed() string {
	text := expect.Result(os.ReadFile(r.out)).Value(r.s.t)
	return string(text)
}

// awaitLines waits until the program has printed the given number of lines, and returns them.
func (r *run) awaitLines(lines int) []string {
	r.s.t.Helper()
	until(r.s.t, "it has printed", func() bool { return strings.Count(r.printed(), "\n") >= lines })
	return strings.Split(strings.TrimSuffix(r.printed(), "\n"), "\n")
}

func gone(pid int) bool {
	_, err := look(pid)
	return err != nil
}

func pid(t *testing.T, text string) int {
	t.Helper()
	n := expect.Result(strconv.Atoi(strings.TrimSpace(text))).Value(t)
	return n
}

func over() <-chan time.Time {
	c := make(chan time.Time)
	close(c)
	return c
}

// foreignChild starts a child that this package does not know.
func foreignChild(t *testing.T, script string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out := expect.Result(cmd.StdoutPipe()).Value(t)
	must(t, cmd.Start())
	return cmd, bufio.NewReader(out)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(text), 0o755))
}

func quiet(t *testing.T) *slog.Logger { return testlog.Of(t) }
