package limits

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// A Pausing says who has paused something, and when.
type Pausing struct {
	task.Pausable
	By    string
	Since task.Time
}

// Pause stops claims from the given queues, groups or namespace. When it returns, no worker claims their tasks any
// more. It returns the number of new pauses.
func (s *Limiter) Pause(ctx context.Context, who string, what ...task.Pausable) (int, error) {
	return s.setPaused(ctx, true, who, what)
}

// Resume ends pauses, and returns how many it ended. The server then returns the tasks of groups that claims have held.
func (s *Limiter) Resume(ctx context.Context, who string, what ...task.Pausable) (int, error) {
	return s.setPaused(ctx, false, who, what)
}

func (s *Limiter) setPaused(ctx context.Context, pausing bool, who string, what []task.Pausable) (n int, err error) {
	const doing = "pause or resume"
	names := make([]string, len(what))
	for i, p := range what {
		if err := p.Check(); err != nil {
			return 0, fmt.Errorf("%s: %w", doing, err)
		}
		names[i] = p.String()
	}
	if len(names) == 0 {
		return 0, nil
	}
	paused := s.Conn.Keys.Paused()
	var clock *redis.TimeCmd
	var before *redis.SliceCmd
	var all *redis.IntCmd
	var waiting *redis.StringSliceCmd
	err = s.Conn.Pipeline(ctx, doing, func(p redis.Pipeliner) {
		clock, before, all = p.Time(ctx), p.HMGet(ctx, paused, names...), p.HLen(ctx, paused)
		waiting = p.HKeys(ctx, s.Conn.Keys.First())
	})
	if err != nil {
		return 0, err
	}
	for _, value := range before.Val() {
		if (value != nil) != pausing {
			n++
		}
	}
	if pausing && n > 0 && int(all.Val())+n > task.MaxPaused {
		return 0, fmt.Errorf("pause: more than %d queues and groups would be paused; resume some of them", task.MaxPaused)
	}
	// A repeated call writes again, because a replica may lack the change.
	return n, s.Conn.Write(ctx, doing, func(p redis.Pipeliner) {
		for _, name := range names {
			if pausing {
				p.HSetNX(ctx, paused, name, task.At(clock.Val()).String()+" "+who)
				continue
			}
			p.HDel(ctx, paused, name)
			if what, _ := task.ParsePausable(name); what.Group != "" { // the server returns the tasks of the group
				s.check(ctx, p, task.PauseReason(what.Group))
			}
		}
		if !pausing {
			s.wakeWorkers(ctx, p, waiting.Val())
		}
	})
}

// mostWoken is for how many requirements the end of a pause wakes workers. Workers notice the others when they next
// claim.
const mostWoken = 1000

// wakeWorkers wakes workers for tasks of the list open, and of requirements.
func (s *Limiter) wakeWorkers(ctx context.Context, p redis.Pipeliner, requirements []string) {
	const tokens = 8
	s.wake(ctx, p, s.Conn.Keys.WakeOpen(), tokens)
	for _, name := range requirements[:min(len(requirements), mostWoken)] {
		if name != class.Plain {
			s.wake(ctx, p, s.Conn.Keys.WakeFor(name), tokens)
		}
	}
}

// Paused returns what is paused now, ordered by name.
func (s *Limiter) Paused(ctx context.Context) ([]Pausing, error) {
	all, err := s.pausings(ctx)
	return slices.DeleteFunc(all, func(p Pausing) bool { return p.Failures > 0 }), err
}

// Halts returns the groups that a server pauses after a number of failures, ordered by name.
func (s *Limiter) Halts(ctx context.Context) ([]Pausing, error) {
	all, err := s.pausings(ctx)
	return slices.DeleteFunc(all, func(p Pausing) bool { return p.Failures == 0 }), err
}

func (s *Limiter) pausings(ctx context.Context) ([]Pausing, error) {
	all, err := conn.Ask(ctx, s.Conn, "read what is paused", func(r redis.Cmdable) *redis.MapStringStringCmd {
		return r.HGetAll(ctx, s.Conn.Keys.Paused())
	})
	if err != nil {
		return nil, err
	}
	var paused []Pausing
	for name, text := range all {
		if what, ok := task.ParsePausable(name); ok {
			since, by, _ := strings.Cut(text, " ")
			p := Pausing{Pausable: what, By: by}
			p.Since, _ = task.ParseTime(since)
			paused = append(paused, p)
		}
	}
	slices.SortFunc(paused, func(a, b Pausing) int { return strings.Compare(a.String(), b.String()) })
	return paused, nil
}
