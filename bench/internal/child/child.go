// Package child runs parts of a measurement in processes of their own.
//
// The parent writes verbs to the child's stdin, one on each line. The child answers each verb with one line of JSON on
// its stdout. Its first line says that it is ready. It ends when its stdin ends, so it does not outlive its parent.
package child

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A Process is a child process.
type Process struct {
	name    string
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers *bufio.Reader
	calls   sync.Mutex
}

// An answer is a line from the child.
type answer struct {
	Error string          `json:"error,omitempty"`
	Reply json.RawMessage `json:"reply,omitempty"`
}

// Start starts a child and waits until it is ready. When the command's context ends, the child is killed.
func Start(name string, cmd *exec.Cmd) (*Process, error) {
	p := &Process{name: name, cmd: cmd}
	cmd.Stderr = os.Stderr
	var err error
	if p.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.answers = bufio.NewReader(out)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	if err := p.read(nil); err != nil {
		_ = p.Stop() // the error of read says more than the error of Stop
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

// Call sends a verb, and waits for the answer of the child. If the argument reply is not nil, Call decodes the answer
// into it.
func (p *Process) Call(verb string, reply any) error {
	p.calls.Lock()
	defer p.calls.Unlock()
	if _, err := fmt.Fprintln(p.in, verb); err != nil {
		return fmt.Errorf("%s: %s: %w", p.name, verb, err)
	}
	if err := p.read(reply); err != nil {
		return fmt.Errorf("%s: %s: %w", p.name, verb, err)
	}
	return nil
}

func (p *Process) read(reply any) error {
	line, err := p.answers.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("the process has ended: %w", err)
	}
	var a answer
	if err := json.Unmarshal(line, &a); err != nil {
		return fmt.Errorf("invalid answer %q: %w", line, err)
	}
	if a.Error != "" {
		return errors.New(a.Error)
	}
	if reply == nil {
		return nil
	}
	return json.Unmarshal(a.Reply, reply)
}

// patience is how long Stop waits for the end of the child.
const patience = 20 * time.Second

// Stop ends the child. If the child does not end by itself, Stop kills it and returns an error.
func (p *Process) Stop() error {
	p.in.Close()
	killed := time.AfterFunc(patience, func() { p.cmd.Process.Kill() })
	_, _ = io.Copy(io.Discard, p.answers)
	err := p.cmd.Wait()
	if !killed.Stop() {
		return fmt.Errorf("%s did not end within %s", p.name, patience)
	}
	return err
}

// CPU returns the CPU time that the child and its ended children have used. The child must have ended.
func (p *Process) CPU() time.Duration { return CPUOf(p.cmd) }

// Used returns the CPU time that the running child and its ended children have used so far.
func (p *Process) Used() (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	var ticks int64
	for _, field := range fields[11:15] { // utime, stime, cutime, cstime
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * (time.Second / 100), nil
}

// CPUOf returns the CPU time of a command that has ended, with its ended children.
func CPUOf(cmd *exec.Cmd) time.Duration {
	if cmd.ProcessState == nil {
		return 0
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

// A Verb is a function of a child. Its result is encoded as JSON.
type Verb func(ctx context.Context) (any, error)

// Serve runs in the child. It reads verbs of the parent from the reader in, and answers them, until the reader is at
// its end.
func Serve(ctx context.Context, in io.Reader, out io.Writer, verbs map[string]Verb) error {
	lines := bufio.NewScanner(in)
	encoder := json.NewEncoder(out)
	if err := encoder.Encode(answer{}); err != nil {
		return err
	}
	for lines.Scan() {
		if err := encoder.Encode(carryOut(ctx, verbs[lines.Text()])); err != nil {
			return err
		}
	}
	return lines.Err()
}

func carryOut(ctx context.Context, verb Verb) answer {
	if verb == nil {
		return answer{Error: "unknown verb"}
	}
	result, err := verb(ctx)
	if err != nil {
		return answer{Error: err.Error()}
	}
	reply, err := json.Marshal(result)
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Reply: reply}
}
