package conn

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// The pause between two tries grows from firstPause to lastPause, with jitter.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 5 * time.Second
)

// UntilAnswered calls the function op until Redis has answered, or ctx has ended. So op may run several times. The
// result is nil, an error of op that is not an outage, or one that wraps the cause of ctx.
//
// If the user lacks a right that only this call needs, the error is a *[ForbiddenError]. Before UntilAnswered returns
// this error, it calls op once more, because the rights may have changed.
func (s *Conn) UntilAnswered(ctx context.Context, op func(context.Context) error) error {
	if err := s.Ready(ctx); err != nil {
		return err
	}
	defer between(ctx)
	return s.retry(ctx, op)
}

// retry is like UntilAnswered, but does not call Ready first.
func (s *Conn) retry(ctx context.Context, op func(context.Context) error) error {
	pause := firstPause
	var loggedAt time.Time
	var why, loggedReason string
	onlyThis, redirects := false, 0
	for try := 0; ; try++ {
		sent := time.Now()
		err := op(ctx)
		s.latencies.add(time.Since(sent))
		if ctx.Err() != nil && err != nil {
			return unanswered(ctx, why)
		}
		if errors.Is(err, redis.ErrClosed) {
			return fmt.Errorf("the connection was closed by this program: %w", err)
		}
		reason, passes := s.outage(err)
		why = reason
		if !passes {
			s.recovered(try)
			return err
		}
		if s.cluster.redirected(ctx, err) {
			if redirects++; redirects <= maxRedirects || errors.Is(err, errStale) { // each stale connection once
				try-- // a redirect is no outage
				continue
			}
		}
		if LacksRights(err) {
			if onlyThis {
				s.recovered(try)
				return &ForbiddenError{Addr: s.at(), Err: err}
			}
			if onlyThis = s.canMoveTasks(ctx); onlyThis {
				continue
			}
		}
		if try == 0 {
			continue // the first error may only mean that Redis has closed an idle connection
		}
		if try == 1 {
			s.outages.Add(1)
		}
		if why != loggedReason || time.Since(loggedAt) > logAgain {
			s.logOutage(why, err)
			loggedAt, loggedReason = time.Now(), why
		}
		if !Sleep(ctx, pause/2+rand.N(pause/2)) {
			return unanswered(ctx, why)
		}
		pause = min(2*pause, lastPause)
	}
}

// unanswered returns the cause of the end of ctx, and why Redis has not answered before, if that is known.
func unanswered(ctx context.Context, why string) error {
	if why == "" {
		return context.Cause(ctx)
	}
	return fmt.Errorf("%s: %w", why, context.Cause(ctx))
}

// logAgain is the time after which the log repeats the reason of an outage.
const logAgain = time.Minute

func (s *Conn) logOutage(why string, err error) {
	var answer redis.Error
	if s.options.TLSConfig != nil && !s.connected.Load() && !errors.As(err, &answer) &&
		!errors.Is(err, syscall.ECONNREFUSED) {
		why += "; [redis] tls is on: does this Redis speak TLS?"
	}
	s.Log.Warn("redis cannot be used, waiting for it", "redis", s.at(), "why", why, "error", err)
}

func (s *Conn) recovered(try int) {
	if try > 1 {
		s.Log.Info("redis can be used again", "redis", s.at())
	}
}

// Outages returns the number of times that this client had to wait for Redis.
func (s *Conn) Outages() int64 { return s.outages.Load() }

func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
