package redisstate

import (
	"context"
	"math/rand/v2"
	"time"
)

// Pauses between two tries grow from the first to the last of these, with jitter.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 5 * time.Second
)

// untilAnswered calls op until Redis has answered it, or ctx ends. What comes back is an answer,
// an error that waiting does not mend, or ctx's error. Everything sent this way may be sent twice.
//
// A missing right that concerns this call alone is a *[ForbiddenError]. The call is sent once more after Redis has said so: the
// rights may have changed in between.
func (s *Store) untilAnswered(ctx context.Context, op func(context.Context) error) error {
	pause := firstPause
	var loggedAt time.Time
	var loggedReason string
	onlyThis := false
	for try := 0; ; try++ {
		err := op(ctx)
		if ctx.Err() != nil && err != nil {
			return context.Cause(ctx)
		}
		why, passes := s.outage(err)
		if !passes {
			s.recovered(try)
			return err
		}
		if lacksRights(err) {
			if onlyThis {
				s.recovered(try)
				return &ForbiddenError{Addr: s.addr, Err: err}
			}
			if onlyThis = s.canMoveTasks(ctx); onlyThis {
				continue
			}
		}
		if try == 0 {
			continue // an idle connection that Redis has closed is no outage
		}
		if try == 1 {
			s.outages.Add(1)
		}
		if why != loggedReason || time.Since(loggedAt) > logAgain {
			s.logOutage(why, err)
			loggedAt, loggedReason = time.Now(), why
		}
		if !sleep(ctx, pause/2+rand.N(pause/2)) {
			return context.Cause(ctx)
		}
		pause = min(2*pause, lastPause)
	}
}

// logAgain is how long an outage may go on for one reason before the log says so once more.
const logAgain = time.Minute

func (s *Store) logOutage(why string, err error) {
	if s.options.TLSConfig != nil {
		why += "; [redis] tls is on: does it speak TLS?"
	}
	s.log.Warn("redis cannot be used, waiting for it", "redis", s.addr, "why", why, "error", err)
}

func (s *Store) recovered(try int) {
	if try > 1 {
		s.log.Info("redis can be used again", "redis", s.addr)
	}
}

// Outages counts how often this store has had to wait for its Redis.
func (s *Store) Outages() int64 { return s.outages.Load() }

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
