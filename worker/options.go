package worker

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/tdf-framework/tdf/fetch"
	"github.com/tdf-framework/tdf/internal/broker"
	"github.com/tdf-framework/tdf/internal/task"
)

// An Option configures a worker. [New] and [Load] return an error for nil values, for two Runners, for a Runner beside
// handlers, for two handlers of one program, and for a handler of a program that no task can have.
type Option func(*options)

type options struct {
	log           *slog.Logger
	version       string
	sole          bool
	endOnFullDisk bool
	runner        Runner
	handlers      handlers
	archives      []fetch.Compression
	wrap          []func(next Handler) Handler
	timers        func(time.Duration) <-chan time.Time // nil for time.After
	store         broker.DirectStore                   // a test sets it; otherwise, Run connects to Redis

	errs []error
}

func newOptions(with []Option) (options, error) {
	o := options{log: slog.Default(), handlers: handlers{}}
	for _, option := range with {
		option(&o)
	}
	if o.runner != nil && len(o.handlers) > 0 {
		o.errs = append(o.errs, errors.New("a worker has either a Runner or handlers"))
	}
	if o.runner == nil && len(o.handlers) == 0 && len(o.archives) == 0 {
		o.errs = append(o.errs, errors.New("a worker without handlers runs programs, so it needs "+
			"worker.WithArchives(archive.Compressions()...), with the package fetch/archive"))
	}
	if slices.ContainsFunc(o.wrap, func(f func(Handler) Handler) bool { return f == nil }) {
		o.errs = append(o.errs, errors.New("a function of Use is nil"))
	}
	if err := errors.Join(o.errs...); err != nil {
		return o, fmt.Errorf("make a worker: %w", err)
	}
	for program, h := range o.handlers {
		o.handlers[program] = o.wrapped(h)
	}
	return o, nil
}

// WithLog sets the worker's log. The default is [slog.Default], and for [Load] the log of the file.
func WithLog(log *slog.Logger) Option {
	return func(o *options) {
		if log == nil {
			o.errs = append(o.errs, errors.New("the log is nil"))
		}
		o.log = log
	}
}

// WithVersion sets the version that `tdf workers` shows for this worker. The default is no version.
func WithVersion(version string) Option {
	return func(o *options) { o.version = version }
}

// WithSole says that this process runs nothing but workers. An orphaned process may become a child of this process
// without a known origin. A worker then ends that process, because a program must have started it.
func WithSole() Option {
	return func(o *options) { o.sole = true }
}

// WithEndOnFullDisk makes [Worker.Run] return an error if the disk is full, so that no round can start, and no round
// runs. Without this option, the worker waits until the disk has room again.
func WithEndOnFullDisk() Option {
	return func(o *options) { o.endOnFullDisk = true }
}

// WithArchives says which archives of programs the worker unpacks. Each worker that runs programs needs it, with
// archive.Compressions of the package fetch/archive. A worker that only has handlers does not link these.
func WithArchives(all ...fetch.Compression) Option {
	return func(o *options) { o.archives = all }
}

// WithTimers replaces [time.After], so that a test decides when heartbeats, renewals and pauses are due. When the
// worker stops, it then waits for Redis without a limit.
func WithTimers(after func(time.Duration) <-chan time.Time) Option {
	return func(o *options) { o.timers = after }
}

// WithRunner makes r run the rounds in this process. The worker then fetches no programs and starts no run.sh
// (docs/programs.md, "Rounds without a process"). Most projects should use [Handle] instead.
func WithRunner(r Runner) Option {
	return func(o *options) {
		if r == nil {
			o.errs = append(o.errs, errors.New("the Runner is nil"))
		}
		if o.runner != nil {
			o.errs = append(o.errs, errors.New("a worker has one Runner, not two"))
		}
		o.runner = r
	}
}

// Handle makes h run the rounds of all tasks of a program in this process. The worker then fetches no programs and
// starts no run.sh (docs/programs.md, "Rounds without a process").
//
// Handle may be given several times, once for each program. The worker then claims only tasks of these programs, and of
// them only tasks without a source. Workers without handlers run the tasks that have a source.
//
// The worker cannot end a handler that ignores its context: see [Worker.Run].
func Handle(program string, h Handler) Option {
	return func(o *options) {
		if err := o.checkHandler(program, h); err != nil {
			o.errs = append(o.errs, err)
		}
		o.handlers[program] = h
	}
}

// Use wraps the handlers of all programs, for example to log or to measure their rounds, or to report their errors. The
// first is the outermost.
func Use(wrap ...func(next Handler) Handler) Option {
	return func(o *options) { o.wrap = append(o.wrap, wrap...) }
}

// wrapped returns a handler with what wraps it.
func (o *options) wrapped(h Handler) Handler {
	for _, wrap := range slices.Backward(o.wrap) {
		h = wrap(h)
	}
	return h
}

func (o *options) checkHandler(program string, h Handler) error {
	one := task.Defaults(program, "", "")
	if err := one.Validate(); err != nil {
		return fmt.Errorf("handle program %q: %w", program, err)
	}
	if h == nil {
		return fmt.Errorf("program %q has a nil handler", program)
	}
	if o.handlers[program] != nil {
		return fmt.Errorf("program %q has two handlers", program)
	}
	return nil
}

// inProcess reports whether rounds run in this process.
func (o *options) inProcess() bool { return o.runner != nil || len(o.handlers) > 0 }
