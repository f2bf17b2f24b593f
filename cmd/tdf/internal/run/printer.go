package run

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/sweep"
)

// A printer prints the outputs of tasks: first what a task wrote to stdout, then what it wrote to stderr.
type printer struct {
	a          *cli.App
	tag, quiet bool
	files      *resultsDir // gets the outputs instead; nil for none
	outputs    [2]string   // names of the files with stdout and stderr that Redis does not hold whole

	mu   sync.Mutex
	line bool  // stderr ends with a line of progress, which must be removed first
	part int64 // how often only a part of something has arrived
}

// print prints the outputs of the last round of a task.
func (p *printer) print(t *manager.Task, of item) (err error) {
	if p.quiet && p.files == nil {
		return nil
	}
	r := t.LastRun()
	if r == nil && t.Outcome != string(task.Succeeded) {
		p.a.Say("tdf: %s without a run: %s", t.Outcome, of.commandOf(t))
	}
	if r == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.removeLine()
	stdout, stderr, closing, err := p.targets(t, of)
	if err != nil {
		return fmt.Errorf("--results: %w", err)
	}
	defer func() { err = errors.Join(err, closing()) }()
	err = p.copy(stdout, t, of, 0, r.Output, r.OutputBytes)
	if errors.Is(err, syscall.EPIPE) {
		return cli.ErrNoReader
	}
	if err != nil {
		return fmt.Errorf("print the output: %w", err)
	}
	printed, reason := r.Error, ""
	n := r.ErrorBytes
	if t.Outcome == string(task.TimedOut) && strings.HasPrefix(printed, "timed out: ") {
		n = 0 // the worker's own text
	}
	if n <= int64(len(printed)) {
		printed, reason = printed[:n], strings.TrimSpace(printed[n:])
	}
	err = p.copy(stderr, t, of, 1, printed, n)
	if err != nil {
		return fmt.Errorf("print stderr: %w", err)
	}
	if t.Outcome == string(task.Succeeded) || p.quiet {
		return nil
	}
	if p.files == nil && printed != "" && !strings.HasSuffix(printed, "\n") {
		io.WriteString(p.a.Stderr, "\n")
	}
	p.a.Say("tdf: %s: %s", why(t, r, reason), of.commandOf(t))
	return nil
}

// targets returns where the outputs of a task go, and a function that closes it.
func (p *printer) targets(t *manager.Task, of item) (stdout, stderr io.Writer, closing func() error, err error) {
	if p.files == nil {
		return p.a.Stdout, p.a.Stderr, func() error { return nil }, nil
	}
	files, err := p.files.create(t, of)
	return files[0], files[1], func() error { return errors.Join(files[0].Close(), files[1].Close()) }, err
}

// why says why a task did not succeed. The reason is what the worker has added to stderr.
func why(t *manager.Task, r *manager.Round, reason string) string {
	exit := r.Exit
	_, err := strconv.Atoi(exit)
	if err == nil {
		exit = "exit status " + exit
	}
	onlyExit := reason == "" || strings.HasSuffix(reason, "and printed nothing to stderr") // says no more than exit
	failed := t.Outcome == string(task.Failed) && exit != ""
	switch {
	case failed && onlyExit:
		return exit
	case failed && strings.HasPrefix(reason, "run.sh "): // a remark of the worker
		return exit + "; " + format.OneLine(reason, 500)
	case reason != "":
		return format.OneLine(reason, 500)
	}
	return t.Outcome
}

// whole returns a reader of all that a round has printed to a stream. If Redis holds only a part, the rest is in a file
// of the worker. If this call does not run the worker, or if the file is gone, whole says so.
func (p *printer) whole(t *manager.Task, of item, stream int, text string, size int64) io.ReadCloser {
	r := t.LastRun()
	if size <= int64(len(text)) {
		return io.NopCloser(strings.NewReader(text))
	}
	path := strings.NewReplacer("$program", t.Program, "$worker", r.Worker, "$taskId", strconv.FormatInt(t.ID, 10),
		"$round", strconv.Itoa(r.Number)).Replace(p.outputs[stream])
	f, err := os.Open(path)
	if err == nil {
		_ = os.Remove(path) // it is printed now; the file stays readable while it is open
		return f
	}
	if !errors.Is(err, fs.ErrNotExist) {
		p.a.Say("tdf: read the whole output: %v", err)
	}
	p.missing("of the %d bytes that the command has printed to %s on worker %s, only a part has arrived: %s",
		size, [2]string{"stdout", "stderr"}[stream], r.Worker, of.commandOf(t))
	return io.NopCloser(strings.NewReader(text))
}

// missing says that only a part of something has arrived.
func (p *printer) missing(text string, args ...any) {
	p.part++
	p.a.Say("tdf: "+text, args...)
}

// copy copies a stream. With --tag, each line begins with the input.
func (p *printer) copy(to io.Writer, t *manager.Task, of item, stream int, text string, size int64) error {
	from := p.whole(t, of, stream, text, size)
	defer from.Close()
	if !p.tag || p.files != nil {
		_, err := io.Copy(to, from)
		return err
	}
	tagged := &tagger{to: to, tag: []byte(of.tag(t) + "\t"), begins: true}
	_, err := io.Copy(tagged, from)
	if err == nil && !tagged.begins { // otherwise, the next tag would be in the middle of a line
		_, err = io.WriteString(to, "\n")
	}
	return err
}

// values returns the parameters of a task, if Redis or the call has them.
func (i *item) values(t *manager.Task) []sweep.Param {
	if i.params != nil {
		return i.params
	}
	params, _ := sweep.ParseParams([]byte(t.Meta)) // without parameters, there are none
	return params
}

// tag returns the input of a task, for the lines of its output. Without values, it is the command.
func (i *item) tag(t *manager.Task) string {
	params := i.values(t)
	if len(params) == 0 && i.stdin == "" {
		return i.commandOf(t)
	}
	var all []string
	for _, v := range params {
		all = append(all, v.Text)
	}
	return strings.Join(all, " ")
}

// removeLine removes the line of progress.
func (p *printer) removeLine() {
	if p.line {
		io.WriteString(p.a.Stderr, "\r\x1b[K")
		p.line = false
	}
}

// progress replaces the line of progress.
func (p *printer) progress(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.removeLine()
	io.WriteString(p.a.Stderr, text)
	p.line = true
}

// endProgress removes the line of progress for good.
func (p *printer) endProgress() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.removeLine()
}

// A tagger writes a tag at the begin of each line.
type tagger struct {
	to     io.Writer
	tag    []byte
	begins bool // a line begins
}

func (t *tagger) Write(text []byte) (int, error) {
	var tagged bytes.Buffer
	for line := range bytes.Lines(text) {
		if t.begins {
			tagged.Write(t.tag)
		}
		tagged.Write(line)
		t.begins = line[len(line)-1] == '\n'
	}
	_, err := t.to.Write(tagged.Bytes())
	return len(text), err
}
