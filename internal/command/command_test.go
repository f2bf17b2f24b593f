package command

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

func TestParse(t *testing.T) {
	host := expect.Result(os.Hostname()).Value(t)
	for _, c := range []struct {
		args []string
		want Arguments
	}{
		{[]string{"w1", "a.cfg"}, Arguments{"w1", "a.cfg"}},
		{[]string{"%h", "%h.cfg"}, Arguments{host, "%h.cfg"}},
		{[]string{"a-%h-%h", "x"}, Arguments{"a-" + host + "-" + host, "x"}},
		{[]string{"--", "-w", "x"}, Arguments{"-w", "x"}},
		{[]string{strings.Repeat("x", 200), "x"}, Arguments{strings.Repeat("x", 200), "x"}},
	} {
		var out bytes.Buffer
		expect.Equal(t, expect.Result(Parse("tdf-x", "", c.args, &out)).Value(t), c.want)
		expect.Equal(t, out.Len(), 0)
	}
	for _, args := range [][]string{{}, {"a"}, {"a", "b", "c"}, {"-x", "a", "b"}, {"", "b"}, {strings.Repeat("x", 201), "b"}, {"\xff", "b"}} {
		var usage *UsageError
		if _, err := Parse("tdf-x", "", args, &bytes.Buffer{}); !errors.As(err, &usage) || !strings.Contains(err.Error(), "usage: tdf-x [FLAGS] NAME FILE.cfg") {
			t.Errorf("%q: got %v", args, err)
		}
	}
}

func TestStatus(t *testing.T) {
	ended, end := context.WithCancel(context.Background())
	end()
	refused := &conn.RefusedError{Addr: "r:1", Reason: "no"}
	for _, c := range []struct {
		ctx  context.Context
		err  error
		want int
		text string
	}{
		{t.Context(), nil, 0, ""},
		{t.Context(), errAnswered, 0, ""},
		{ended, fmt.Errorf("connecting: %w", context.Canceled), 0, ""},
		{t.Context(), errors.New("other"), 1, "x: other\n"},
		{t.Context(), &UsageError{"wrong"}, 2, "x: wrong\n"},
		{t.Context(), &config.Error{Source: "f", Problem: "wrong"}, 2, "x: f: wrong\n"},
		{t.Context(), fmt.Errorf("wrapped: %w", refused), 2, "x: wrapped: redis at r:1: no\n"},
		{ended, refused, 2, "x: redis at r:1: no\n"},
	} {
		var stderr bytes.Buffer
		expect.Equal(t, Status(c.ctx, "x", c.err, &stderr), c.want, c.text)
		expect.Equal(t, stderr.String(), c.text, c.want)
	}
}

func TestVersion(t *testing.T) {
	got := Version()
	expect.NotEqual(t, got, "")
	expect.True(t, !strings.ContainsAny(got, " \n"), got)
}

// A version has the number of the release, and the commit if it is known.
func TestVersionOf(t *testing.T) {
	revision := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"}
	modified := debug.BuildSetting{Key: "vcs.modified", Value: "true"}
	for _, c := range []struct {
		module   string
		settings []debug.BuildSetting
		want     string
	}{
		{"", nil, "1.2.3"},
		{"(devel)", nil, "1.2.3"},
		{"v1.2.3", nil, "1.2.3"}, // go install COMMAND@v1.2.3
		{"v1.2.4-0.20260102030405-0123456789ab", nil, "1.2.4-0.20260102030405-0123456789ab"},
		{"v1.2.3", []debug.BuildSetting{revision}, "1.2.3+0123456789ab"},
		{"v1.2.4-0.20260102030405-0123456789ab+dirty", []debug.BuildSetting{revision, modified}, "1.2.3+0123456789ab.dirty"},
		{"(devel)", []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}}, "1.2.3+abc"},
	} {
		info := &debug.BuildInfo{Main: debug.Module{Path: module, Version: c.module}, Settings: c.settings}
		expect.Equal(t, versionOf("1.2.3", info), c.want, c.module, c.settings)
	}
}

// The process of TestSignals ends when the first context does, and says "second" when the second does.
func TestMain(m *testing.M) {
	if os.Getenv("SIGNALS") == "" {
		os.Exit(m.Run())
	}
	first, second := Signals()
	fmt.Println("ready")
	<-first.Done()
	fmt.Println("first")
	<-second.Done()
	fmt.Println("second")
}

// A signal that timeout(1) sends to a command and to its group does not count as two.
func TestOneSignalComesTwice(t *testing.T) {
	signals := make(chan os.Signal, 2)
	signals <- syscall.SIGINT
	firstOf(signals, func() { signals <- syscall.SIGINT })
	expect.Equal(t, len(signals), 0)
}

// If stderr is a file, SIGHUP opens the file again, so that logrotate can rename it, and the process goes on.
func TestHangupReopensTheLogFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	log := expect.Result(os.Create(path)).Value(t)
	cmd := exec.Command(expect.Result(os.Executable()).Value(t))
	cmd.Env, cmd.Stderr = append(os.Environ(), "SIGNALS=1"), log
	out := bufio.NewScanner(expect.Result(cmd.StdoutPipe()).Value(t))
	expect.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	expect.MustTrue(t, out.Scan(), "no line")
	expect.NoError(t, os.Rename(path, path+".1"))
	expect.NoError(t, cmd.Process.Signal(syscall.SIGHUP))
	expect.Eventually(t, "the new file", func() bool {
		opened, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/2", cmd.Process.Pid))
		return err == nil && opened == path
	})
	expect.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	expect.MustTrue(t, out.Scan(), "no line")
	expect.Equal(t, out.Text(), "first")
}

// A closed terminal stops a command, unless the command ignores SIGHUP because of nohup. A second SIGHUP does not
// hurry it.
func TestSignals(t *testing.T) {
	hup, term := syscall.SIGHUP, syscall.SIGTERM
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, hup) // children do not inherit that this process ignores it, if nohup has started the test
	t.Cleanup(func() { signal.Stop(caught) })
	for name, c := range map[string]struct {
		run   []string
		sends []syscall.Signal
	}{
		"a closed terminal": {nil, []syscall.Signal{hup, hup, term}},
		"SIGTERM":           {nil, []syscall.Signal{term, hup, term}},
		"nohup":             {[]string{"/bin/sh", "-c", `trap "" HUP; exec "$0"`}, []syscall.Signal{term, hup, term}},
	} {
		t.Run(name, func(t *testing.T) {
			args := append(c.run, expect.Result(os.Executable()).Value(t))
			cmd := exec.Command(args[0], args[1:]...)
			cmd.Env = append(os.Environ(), "SIGNALS=1")
			out := expect.Result(cmd.StdoutPipe()).Value(t)
			expect.NoError(t, cmd.Start())
			t.Cleanup(func() { _ = cmd.Process.Kill() })
			lines := bufio.NewScanner(out)
			says := func(want string) {
				t.Helper()
				expect.MustTrue(t, lines.Scan(), "no line")
				expect.MustEqual(t, lines.Text(), want)
			}
			says("ready")
			if c.run != nil {
				expect.NoError(t, cmd.Process.Signal(hup))
				status := string(expect.Result(os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))).Value(t))
				_, ignored, _ := strings.Cut(status, "SigIgn:")
				expect.True(t, strings.ContainsRune("13579bdf", rune(strings.Fields(ignored)[0][15])), status)
			}
			expect.NoError(t, cmd.Process.Signal(c.sends[0]))
			says("first")
			for _, s := range c.sends[1:] {
				expect.NoError(t, cmd.Process.Signal(s))
			}
			says("second")
			expect.NoError(t, cmd.Wait())
		})
	}
}
