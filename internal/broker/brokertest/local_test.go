package brokertest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tdf-framework/tdf/fetch/archive"
	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/testlog"
	"github.com/tdf-framework/tdf/internal/testspace"
	worked "github.com/tdf-framework/tdf/worker"
)

// A local is a *worker.Worker with one slot. Before its registration, it runs one task for each claim. After it, it
// claims tasks by itself.
type local struct {
	*scene
	*worked.Worker
	offer
	wrong error // why there is no Worker
	dir   string
	every time.Duration // its lease
	ctx   context.Context
	stop  context.CancelFunc
	log   testlog.Buffer
	clock clock
	gate  *gate // nil unless the worker works over the API
	begun chan *localRound
	ran   chan error // from Run
	once  chan error // from the last RunOnce, before the registration

	mu       sync.Mutex
	progress int
}

// A localRound is the run of a task of a local.
type localRound struct {
	*local
	task   int64
	number int
	files  string       // its directory
	over   func(ending) // ends the round
}

// localLease is so long that no timer of a worker passes by itself.
const localLease = 300 * time.Hour

func newLocal(s *scene, o offer, with ...worked.Option) *local {
	l := &local{scene: s, offer: o, begun: make(chan *localRound, 1), ran: make(chan error, 1)}
	cfg := expect.Result(config.DefaultWorker(s.cfg.Namespace)).Value(s)
	cfg.Redis, cfg.Directory, cfg.Lease, cfg.Group = s.workerRedis(), s.TempDir(), localLease, o.campaign
	cfg.Queues, cfg.SleepAfterFailure, cfg.Grace = []class.QueueShare{{Queue: o.queue}}, 0, 0
	if s.kind.api {
		l.gate = newGate(s)
		cfg.Redis, cfg.API, cfg.Lease = config.Redis{}, l.gate.config(s), s.kind.longest.Std()
	}
	if o.lease > 0 {
		cfg.Lease = o.lease.Std()
	}
	cfg.TimeLimit = o.timeLimit.Std()
	l.every, l.dir = cfg.Lease, cfg.Directory
	l.ctx, l.stop = context.WithCancel(context.WithoutCancel(s.Context()))
	with = append(with, worked.WithLog(slog.New(slog.NewTextHandler(&l.log, nil))), worked.WithTimers(l.after),
		worked.WithArchives(archive.Compressions()...))
	l.Worker, l.wrong = worked.New(o.name, cfg, with...)
	return l
}

// longestPause is the longest pause between two attempts.
const longestPause = 250 * testspace.Soon

// after is the clock of the worker. Pauses between two attempts pass at once.
func (l *local) after(d time.Duration) <-chan time.Time {
	if d <= longestPause {
		d = min(d, testspace.Soon/20)
	}
	return l.clock.after(d)
}

// end ends the worker with the test.
func (l *local) end(ran <-chan error) {
	if l.proxy != nil {
		l.proxy.Resume()
	}
	l.stop()
	<-ran // an error, if another worker has taken the name
}

func newHandler(s *scene, o offer) worker {
	var l *local
	l = newLocal(s, o, worked.Handle("p", func(ctx context.Context, r *worked.Round) error {
		dir, err := r.Dir()
		if err != nil {
			return err
		}
		ended := make(chan ending, 1)
		l.begun <- &localRound{l, r.ID, r.Number, dir, func(e ending) { ended <- e }}
		for {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case e := <-ended:
				if e.waits {
					continue
				}
				return handlerError(r, e)
			}
		}
	}))
	return l
}

func handlerError(r *worked.Round, e ending) error {
	err := r.Open(e.opens...)
	if e.fails != "" {
		err = errors.New(e.fails)
	}
	switch {
	case e.permanent:
		return worked.Permanent(err)
	case e.unfit:
		return worked.Unfit(err)
	case e.later > 0:
		return worked.Later(e.later.Std(), err)
	}
	return err
}

// script is a program that says that it has begun, and then runs the commands that the test sends.
const script = `#!/bin/sh
echo "$TDF_TASK_ID $TDF_ROUND $TDF_DIR" >%[1]s/begun
while read -r command <%[1]s/next; do eval "$command"; done
`

func newScript(s *scene, o offer) worker {
	l := newLocal(s, o)
	if l.wrong != nil {
		return l
	}
	control := s.TempDir()
	open := func(name string) *os.File { // both ends, so that no open waits
		path := filepath.Join(control, name)
		expect.NoError(s, syscall.Mkfifo(path, 0o600))
		f := expect.Result(os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0)).Value(s)
		s.Cleanup(func() { f.Close() })
		return f
	}
	begun, next := open("begun"), open("next")
	program := filepath.Join(l.dir, "p")
	expect.NoError(s, os.Mkdir(program, 0o755))
	text := fmt.Sprintf(script, control)
	expect.NoError(s, os.WriteFile(filepath.Join(program, "run.sh"), []byte(text), 0o755))
	go func() {
		for lines := bufio.NewScanner(begun); lines.Scan(); {
			r := &localRound{local: l}
			fmt.Sscan(lines.Text(), &r.task, &r.number, &r.files)
			r.over = func(e ending) { fmt.Fprintln(next, command(r.files, e)) }
			l.begun <- r
		}
	}()
	return l
}

// command returns the command of a shell that ends a program.
func command(dir string, e ending) string {
	for _, d := range e.opens {
		f, err := os.OpenFile(filepath.Join(dir, "open.jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err == nil {
			fmt.Fprintln(f, encode(d))
			f.Close()
		}
	}
	switch {
	case e.waits:
		return ":"
	case e.fails != "":
		return "echo '" + e.fails + "' >&2; exit 1"
	}
	return "exit 0"
}

func (l *local) register() string {
	if l.wrong != nil {
		return l.wrong.Error()
	}
	ended := make(chan error, 1)
	go func() { ended <- l.Run(l.ctx) }()
	var why string
	expect.Eventually(l, "the worker works", func() bool {
		select {
		case err := <-ended:
			why = err.Error()
			return true
		default:
			return strings.Contains(l.log.String(), "msg=working")
		}
	}, func() any { return l.log.String() })
	if why == "" {
		l.ran = ended
		l.Cleanup(func() { l.end(l.ran) })
	}
	return why
}

func (l *local) registered() bool { return strings.Contains(l.log.String(), "msg=working") }

func (l *local) claim() round {
	if l.gate != nil {
		return l.claimOverAPI()
	}
	if l.registered() {
		return <-l.begun
	}
	if l.once != nil {
		<-l.once // the round before has ended
	}
	once, none := make(chan error, 1), make(chan struct{})
	go func() {
		_, err := l.RunOnce(l.ctx)
		close(none)
		once <- err
		close(once)
	}()
	l.once = once
	l.Cleanup(func() { l.end(once) })
	select {
	case r := <-l.begun:
		return r
	case <-none: // also after a task that could not be run
		return nil
	}
}

func (l *local) beat() bool {
	name := l.store.Keys.Worker(l.scene.registered(l.name))
	before := l.redis.HGet(l.Context(), name, "seen").Val()
	lost := false
	l.clock.beat(l, "a heartbeat", l.every, func() bool {
		lost = strings.Contains(l.log.String(), "another worker has taken the name")
		return lost || l.redis.HGet(l.Context(), name, "seen").Val() != before
	})
	return !lost
}

func (l *local) signOff() {
	l.stop()
	expect.NoError(l, <-l.ran)
	l.ran <- nil // for the end of the test
}

func (r *localRound) id() int64 { return r.task }

func (r *localRound) renew() bool {
	r.mu.Lock()
	r.progress++
	want := fmt.Sprintf("0.%06d", r.progress)
	r.mu.Unlock()
	// The directory is gone if the round has ended.
	_ = os.WriteFile(filepath.Join(r.files, "progress"), []byte(want+" on\n"), 0o644)
	held := false
	r.clock.beat(r.local, "a renewal", r.every, func() bool {
		p := r.scene.task(r.task).Rounds.At(r.number).Progress
		held = fmt.Sprintf("%.6f", p.Fraction) == want
		return held || r.answer() != ""
	})
	return held
}

func (r *localRound) report(e ending) answer {
	if e.result != "" {
		expect.NoError(r, os.WriteFile(filepath.Join(r.files, "result.json"), []byte(e.result), 0o644))
	}
	if e.returned {
		r.stop()
	} else {
		r.over(e)
	}
	expect.Eventually(r, "the report", func() bool { return r.answer() != "" })
	return r.answer()
}

var message = regexp.MustCompile(`msg=(?:"([^"]*)"|(\S+)) (?:namespace=\S+ )?task=(\d+) round=(\d+) `)

// answer returns what the log says about the end of the round.
func (r *localRound) answer() answer {
	for _, m := range message.FindAllStringSubmatch(r.log.String(), -1) {
		if m[3] != fmt.Sprint(r.task) || m[4] != fmt.Sprint(r.number) {
			continue
		}
		switch text := m[1] + m[2]; {
		case text == "dropped":
			return refused
		case text == "executed, but its result is refused", text == "could not be run":
			return acceptedAsFailed
		case text == "executed", text == "timed out", strings.HasPrefix(text, "released"):
			return accepted
		}
	}
	return ""
}

// A clock has the timers of a worker. Short ones pass by themselves.
type clock struct {
	mu     sync.Mutex
	timers []timer
}

type timer struct {
	d time.Duration
	c chan time.Time
}

// longest is the longest timer that passes by itself. The worker uses such timers only for pauses.
const longest = 20 * testspace.Soon

var pass = time.After

func (c *clock) after(d time.Duration) <-chan time.Time {
	if d <= longest {
		return pass(d)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t := timer{d, make(chan time.Time, 1)}
	c.timers = append(c.timers, t)
	return t.c
}

// beat lets the timers of heartbeats and renewals pass until ok returns true.
func (c *clock) beat(s *local, state string, lease time.Duration, ok func() bool) {
	s.Helper()
	expect.Eventually(s, state, func() bool {
		c.mu.Lock()
		c.timers = slices.DeleteFunc(c.timers, func(t timer) bool {
			due := t.d > lease/6 && t.d <= lease/3
			if due {
				t.c <- time.Now()
			}
			return due
		})
		c.mu.Unlock()
		return ok()
	})
}
