package chaos

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/testlog"
)

// A process is a component of TDF, which may be killed and started again.
type process struct {
	t       testing.TB
	name    string
	proxies []*redistest.Proxy // between the process and Redis; empty for a worker over HTTP
	command []string
	env     []string
	output  io.Writer // gets stdout; nil if it goes to the log

	begin, end func() // are called after each start, and after each kill; may be nil

	log   testlog.Buffer
	cmd   *exec.Cmd
	stdin io.WriteCloser
	ended chan struct{}
	down  bool // killed, and not yet started again

	broken bool // a fault of the present step concerns the process
}

// start starts the process.
func (p *process) start() {
	p.t.Helper()
	cmd, ended := exec.Command(p.command[0], p.command[1:]...), make(chan struct{})
	cmd.Env, cmd.Stdout, cmd.Stderr = append(environment(), p.env...), &p.log, &p.log
	if p.output != nil {
		cmd.Stdout = p.output
	}
	p.stdin = expect.Result(cmd.StdinPipe()).Value(p.t)
	expect.NoError(p.t, cmd.Start())
	go func() {
		cmd.Wait()
		close(ended)
	}()
	p.t.Cleanup(func() {
		cmd.Process.Kill()
		<-ended
	})
	p.cmd, p.ended, p.down = cmd, ended, false
	if p.begin != nil {
		p.begin()
	}
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	expect.NoError(p.t, p.cmd.Process.Signal(s), p.name)
}

// kill kills the process with SIGKILL, and returns when all of its messages have been read.
func (p *process) kill() {
	p.t.Helper()
	p.signal(syscall.SIGKILL)
	p.markKilled()
}

// markKilled returns when all messages of a process that was killed have been read.
func (p *process) markKilled() {
	<-p.ended
	p.down = true
	if p.end != nil {
		p.end()
	}
}

// resume lets a process run again, whether it was killed or stopped.
func (p *process) resume() {
	if p.down {
		p.start()
	} else {
		p.signal(syscall.SIGCONT)
	}
}

// hasEnded reports whether the process has ended without kill.
func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return !p.down
	default:
		return false
	}
}

// stop lets the process end by itself.
func (p *process) stop() {
	p.t.Helper()
	if p.output != nil {
		p.stdin.Close()
	} else {
		p.signal(syscall.SIGTERM)
	}
	<-p.ended
	expect.Equal(p.t, p.cmd.ProcessState.ExitCode(), 0, p.name, "has ended", p.lastLines())
}

// writeLine writes a line of JSON. It fails only if the reader has ended.
func writeLine(to io.Writer, v any) error { return json.NewEncoder(to).Encode(v) }

func (p *process) lastLines() string {
	lines := strings.Split(strings.TrimSpace(p.log.String()), "\n")
	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}

// environment returns the test's environment without TDF's variables.
func environment() (env []string) {
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "TDF_") {
			env = append(env, variable)
		}
	}
	return env
}

// A splitter calls a function with each line that is written to it.
type splitter struct {
	rest []byte
	line func(text []byte)
}

func (s *splitter) Write(p []byte) (int, error) {
	s.rest = append(s.rest, p...)
	for {
		line, rest, found := bytes.Cut(s.rest, []byte("\n"))
		if !found {
			return len(p), nil
		}
		s.line(line)
		s.rest = rest
	}
}
