package limits

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/lua"
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
	return s.setPaused(ctx, "1", who, what)
}

// Resume ends pauses, and returns how many it ended. The server then returns the tasks of groups that claims have held.
func (s *Limiter) Resume(ctx context.Context, who string, what ...task.Pausable) (int, error) {
	return s.setPaused(ctx, "", who, what)
}

func (s *Limiter) setPaused(ctx context.Context, pausing, who string, what []task.Pausable) (n int, err error) {
	args := []any{pausing, who, task.MaxPaused}
	for _, p := range what {
		if err := p.Check(); err != nil {
			return 0, fmt.Errorf("pause or resume: %w", err)
		}
		args = append(args, p.String())
	}
	keys := []string{s.Conn.Keys.Paused(), s.Conn.Keys.WakeOpen()}
	reply, err := s.Conn.Run(ctx, "pause or resume", lua.Pause, keys, args, conn.IsNumber)
	if conn.Unanswered(err) {
		return 0, err
	}
	if n = conn.Number(reply); n < 0 {
		return 0, fmt.Errorf("pause: more than %d queues and groups would be paused; resume some of them",
			task.MaxPaused)
	}
	return n, err
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
