package worker

import (
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

// waiting is a program that runs until a signal ends it. It reports that it has begun, because before that its shell may block SIGTERM.
const waiting = `#!/bin/sh
echo out; echo err >&2
exec 3>"$1"
sh -c 'echo begun >&3; exec sleep 1000' &
wait
`

func timeout(d *task.Properties) { d.Timeout = 1000 }

func TestTimeout(t *testing.T) {
	for name, c := range map[string]struct {
		script  string
		forgive int
		state   tdf.State
		exit    string
	}{
		"with a child":   {waiting, 0, tdf.TimedOut, "signal: terminated"},
		"forgiven":       {waiting, 1, tdf.Open, "signal: terminated"},
		"ends by itself": {"#!/bin/sh\ntrap 'echo bye; exit 5' TERM\n" + waiting[len("#!/bin/sh\n"):], 0, tdf.TimedOut, "5"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.script("p", c.script)
			p := w.pipe()
			id := w.open(p.path, timeout, func(d *task.Properties) {
				d.MaxTimeouts, d.Backoff, d.BackoffMax, d.KeepFinished = c.forgive, 1000, 500, 7000
			})
			worker, timers := w.worker(), w.timers.hold()
			wait := w.background(t.Context(), worker)
			p.begun()
			timers.fireBetween(t, 15*time.Minute, 17*time.Minute)
			p.ended()
			wait()
			one := w.task(id)
			r := one.Rounds.At(0)
			output := "out\n"
			if c.exit == "5" {
				output += "bye\n"
			}
			expect.Equal(t, one.State, c.state)
			expect.Equal(t, r.Exit, c.exit)
			expect.Equal(t, r.Output, output)
			expect.Equal(t, r.Error, "err\n")
			expect.NotEqual(t, r.TimedOutAt, 0)
			if wait := one.Ready.Sub(r.TimedOutAt); one.State == tdf.Open && (wait < 390 || wait > 610) {
				t.Errorf("it waits for %v s, want about 500 s", wait)
			}
			next, _, err := w.store.NextDue(t.Context())
			if one.State == tdf.TimedOut {
				expect.NoError(t, err)
				expect.Compare(t, next.Sub(r.TimedOutAt), ">=", 6999)
			}
			w.logged(`msg="timed out"`)
		})
	}
}

// The server times the task out while the worker is still ending the program.
func TestTheServerTimesOutFirst(t *testing.T) {
	w := newWorld(t)
	w.script("p", waiting)
	p := w.pipe()
	id := w.open(p.path, func(d *task.Properties) { d.Timeout, d.MaxTimeouts = 0.05, 1 })
	worker, timers := w.worker(), w.timers.hold()
	wait := w.background(t.Context(), worker)
	p.begun()
	m := expect.Result(rules.TimeOut(w.task(id))).Value(t)
	expect.Result(w.store.Apply(t.Context(), "server", redisstate.Unit{Moves: []rules.Move{m}})).OK(t)
	timers.fireBetween(t, -time.Hour, time.Minute)
	timers.fire(t, w.cfg.KillGrace)
	wait()
	one := w.task(id)
	expect.Equal(t, one.State, tdf.Open)
	expect.Equal(t, one.Round, 1)
	expect.Equal(t, one.Timeouts, 1)
	expect.Equal(t, one.Rounds.At(0).Output, "")
	w.logged("level=INFO msg=dropped")
}
