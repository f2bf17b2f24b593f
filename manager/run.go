package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// leastRound is the minimum pause between rounds. If round_duration is 0, this pause prevents a busy loop of requests
// to Redis.
const leastRound = 10 * time.Millisecond

// shortestRound is the shortest time between the starts of two rounds without more work. If many tasks finish, one
// round then handles several of them, and needs less of Redis's time. It does not hold while only one task is left that
// can finish.
const shortestRound = 5 * time.Millisecond

// errRunning is the error of a Run that starts while another Run of the same manager is running.
var errRunning = errors.New("run callbacks: this manager already runs callbacks; create a manager for each Run")

// Run works in rounds: it calls the callbacks of finished tasks and archives these tasks. It returns nil when all tasks
// of Callbacks.Groups are archived, or when Callbacks.Stop returns true. A round starts when a task finishes, but at
// the latest a RoundDuration after the start of the previous round.
//
// If EndOfRound returns an error, Run returns this error. If ctx ends, Run archives the tasks whose callbacks have
// returned nil, and returns the cause of ctx. If Redis does not answer, Run waits. Several managers may handle the same
// tasks: they share them, and only one of them archives each task (docs/manager.md, "Several managers").
func (m *Manager) Run(ctx context.Context, c Callbacks) error {
	if !m.in().Running.TryLock() {
		return errRunning
	}
	defer m.in().Running.Unlock()
	r, err := m.newRun(c)
	if err != nil {
		return fmt.Errorf("run callbacks: %w", err)
	}
	return r.loop(ctx)
}

// loop executes rounds until the last round is done or ctx ends.
func (r *run) loop(ctx context.Context) error {
	ctx = conn.UntilConfirmed(ctx)
	defer r.progress.end()
	var leave func()
	r.attend, leave = r.Manager.attend(ctx)
	defer leave()
	defer r.handling.leave()
	defer r.handling.keep(ctx)()
	for {
		begun := time.Now()
		done, err := r.executeRound(ctx)
		if !done && err == nil {
			err = r.wait(ctx, begun)
		}
		if done || err != nil {
			return r.end(ctx, err)
		}
	}
}

// end waits for the callbacks that run. If one of them has called runtime.Goexit, this goroutine ends, too. So
// t.FailNow in a callback ends the test that called Run.
func (r *run) end(ctx context.Context, err error) error {
	for len(r.calls.running) > 0 {
		err = cmp.Or(err, r.drain(ctx, true))
	}
	if errors.Is(err, errExited) {
		runtime.Goexit()
	}
	return err
}

func (m *Manager) pause() time.Duration { return max(m.in().Config.RoundDuration, leastRound) }

// A run holds the data of one call of Run.
type run struct {
	*Manager
	Callbacks
	scope    []string // the groups whose tasks Run handles; a single "" means all tasks
	handling *handling
	uncalled map[[2]string]bool // the groups and states for which the log says that there is no callback
	attend   func(ctx context.Context, most time.Duration) error
	backoff  backoff
	rounds   int
	again    bool         // whether the next round must start at once
	stages   *pipelineRun // nil if no pipeline runs
	server   serverWatch
	progress progress
	present
	slots   map[string]*slots // of the groups in scope
	calls   calls
	batch   batch
	retries string // see refresh
	failure error  // the last error of a callback
	saidIt  bool   // see sayNotYet
}

func (m *Manager) newRun(c Callbacks) (*run, error) {
	groups, err := scopeOf(c.Groups)
	if err != nil {
		return nil, err
	}
	c.Groups = groups
	if err := c.check(); err != nil {
		return nil, err
	}
	c.Attempts = cmp.Or(c.Attempts, defaultAttempts)
	h := m.newHandling(&c)
	r := &run{
		Manager: m, Callbacks: c, scope: groups, handling: h, backoff: backoff{}, uncalled: map[[2]string]bool{},
	}
	if len(groups) == 0 {
		r.scope = []string{""}
	}
	r.newSlots()
	r.calls = calls{running: map[int64]*call{}, wake: make(chan struct{}, 1)}
	r.server = serverWatch{store: m.in().Store.Presence, log: m.in().Log}
	r.progress = newProgress(m.in().Progress)
	return r, nil
}

// executeRound executes one round, and reports whether it was the last round.
func (r *run) executeRound(ctx context.Context) (done bool, err error) {
	s, err := r.round(ctx)
	if err != nil {
		return false, err
	}
	r.progress.show(s)
	r.sayNotYet()
	if err := r.sayEmpty(ctx); err != nil {
		return false, err
	}
	if r.stages != nil {
		done, err := r.stages.advance(ctx)
		if done || err != nil || r.again || r.stages.isBusy() {
			return done, err
		}
		return false, r.isStuck()
	}
	if r.EndOfRound != nil {
		if err := r.EndOfRound(ctx, s); err != nil {
			return false, err
		}
	}
	if r.Stop != nil {
		return r.Stop(ctx, s), nil
	}
	return s.Done(), r.isStuck()
}

// wait returns when the next round must start. The caller passes the time when the last round started.
func (r *run) wait(ctx context.Context, begun time.Time) error {
	most := r.pause() - time.Since(begun)
	held := task.Forever.Std()
	next := r.backoff.next()
	if r.stages != nil {
		next = min(next, r.stages.failed.next())
	}
	if next < task.Never {
		now, err := r.in().Store.Now(ctx)
		if err != nil {
			return err
		}
		held = next.Sub(now).Std()
	}
	var err error
	switch {
	case r.again || held <= 0:
	case r.Manager.in().Wait != nil:
		// the parameter most has no effect here, because a test's clock stands still during a round
		err = r.Manager.in().Wait(ctx, r.pause(), held)
	case most > 0:
		wake, cancel := r.wakeFor(ctx)
		err = r.attend(wake, min(most, held))
		cancel()
		if r.summary.Counts.Unfinished() > 1 {
			conn.Sleep(ctx, min(shortestRound-time.Since(begun), held))
		}
	}
	return cmp.Or(err, context.Cause(ctx))
}
