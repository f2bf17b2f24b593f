package server

import "context"

type heldStore interface {
	ReturnHeld(ctx context.Context) (n int, more bool, err error)
}

// maxReturns is how often the server makes this call in one round, before it settles again.
const maxReturns = 10

// returnHeld returns held tasks to their queues, as far as the limits of their keys have room, and when their groups
// are no longer paused (docs/lifecycle.md, "Limits per key"). It also makes tasks claimable whose time has come.
func (s *Server) returnHeld(ctx context.Context) (done Done, err error) {
	done = Done{}
	for i, more := 0, true; more && i < maxReturns; i++ {
		var n int
		n, more, err = s.store.ReturnHeld(ctx)
		if done.count("returned", n); err != nil {
			return done, err
		}
	}
	return done, nil
}
