package redisstate

import (
	"context"
	_ "embed"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed prelude.lua
	prelude string
	//go:embed transact.lua
	transactSource string
	//go:embed claim.lua
	claimSource string
	//go:embed renew.lua
	renewSource string
	//go:embed heartbeat.lua
	heartbeatSource string
	//go:embed besteffort.lua
	bestEffortSource string
	//go:embed counts.lua
	countsSource string
	//go:embed rights.lua
	rightsSource string
)

// scripts holds the three that move tasks, the one that signs for workers, the one that notes what
// else is to be known, the one that counts, and the one that tries the user's rights. A Redis at its maxmemory refuses what might need
// more of it, unless a script says that it may: finishing, renewing and heartbeats must go on,
// opening must not.
type scripts struct {
	transact, open, claim, renew, heartbeat, bestEffort, counts, rights *redis.Script
}

func loadScripts(flags bool) scripts {
	script := func(source string, allowOOM bool) *redis.Script {
		header := ""
		if flags && allowOOM {
			header = "#!lua flags=allow-oom\n"
		}
		return redis.NewScript(header + prelude + source)
	}
	return scripts{
		transact: script(transactSource, true), open: script(transactSource, false),
		claim: script(claimSource, false), renew: script(renewSource, true),
		heartbeat: script(heartbeatSource, true), bestEffort: script(bestEffortSource, true),
		counts: redis.NewScript(countsSource), rights: script(rightsSource, true),
	}
}

// Scripts returns the SHA-1 of each script that this release runs on a Redis without script flags, such as the embedded
// one, which lets no other run.
func Scripts() []string {
	all := loadScripts(false)
	var sums []string
	for _, script := range []*redis.Script{
		all.transact, all.open, all.claim, all.renew, all.heartbeat, all.bestEffort, all.counts, all.rights,
		fieldsScript, namesScript, findScript, restoreScript,
	} {
		sums = append(sums, script.Hash())
	}
	return sums
}

// callSlots hands out the slots of this client. A slot has at most one call under way, and
// numbers its calls: Redis keeps each slot's last answer, so a call that is sent again gets
// the answer of the first time, and one that arrives late is told so.
type callSlots struct {
	mu   sync.Mutex
	free []int
	last []uint64
}

func (c *callSlots) take() (slot int, sequence uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.free) == 0 {
		c.free = append(c.free, len(c.last))
		c.last = append(c.last, 0)
	}
	slot = c.free[len(c.free)-1]
	c.free = c.free[:len(c.free)-1]
	c.last[slot]++
	return slot, c.last[slot]
}

// made says whether any call was made.
func (c *callSlots) made() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.last) > 0
}

func (c *callSlots) giveBack(slot int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.free = append(c.free, slot)
}

// call runs a script in a slot of its own until Redis has answered.
func (s *Store) call(ctx context.Context, script *redis.Script, keys []string, args func(slot int, sequence uint64) []any) (any, error) {
	slot, sequence := s.calls.take()
	defer s.calls.giveBack(slot)
	return s.run(ctx, script, keys, args(slot, sequence))
}

func (s *Store) run(ctx context.Context, script *redis.Script, keys []string, args []any) (any, error) {
	reply, _, err := s.runAt(ctx, script, keys, args)
	return reply, err
}

// runAt is run that also returns the time just before the call was sent for the last time.
func (s *Store) runAt(ctx context.Context, script *redis.Script, keys []string, args []any) (reply any, sent time.Time, err error) {
	err = s.untilAnswered(ctx, func(ctx context.Context) error {
		var err error
		sent = time.Now()
		reply, err = script.Run(ctx, s.rdb, keys, args...).Result()
		if err != nil && script == s.scripts.open && strings.HasPrefix(err.Error(), "OOM") {
			return ErrFull
		}
		return err
	})
	if err == nil || err == redis.Nil { // which some scripts answer
		s.scriptWorked.Store(true)
		if slices.Contains([]*redis.Script{s.scripts.transact, s.scripts.open, s.scripts.claim, s.scripts.renew}, script) {
			s.taskMoved.Store(true)
		}
	}
	return reply, sent, unstorable(err)
}
