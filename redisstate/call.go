package redisstate

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed prelude.lua
	prelude string
	//go:embed places.lua
	places string
	//go:embed endings.lua
	endings string
	//go:embed limiting.lua
	limiting string
	//go:embed starting.lua
	starting string
	//go:embed positions.lua
	positions string
	//go:embed ordering.lua
	ordering string
	//go:embed opening.lua
	opening string
	//go:embed deciding.lua
	deciding string
	//go:embed needs.lua
	needs string
	//go:embed transact.lua
	transactSource string
	//go:embed open.lua
	openSource string
	//go:embed moving.lua
	moving string
	//go:embed settle.lua
	settleSource string
	//go:embed move.lua
	moveSource string
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
	//go:embed unused.lua
	unusedSource string
	//go:embed drop.lua
	dropSource string
	//go:embed marks.lua
	marksSource string
	//go:embed rights.lua
	rightsSource string
)

// A luaScript is a Lua script. A full Redis (at its maxmemory) refuses scripts that might use more memory. If a script
// must also run on a full Redis, it has a second form, with a flag that allows this. Only Redis 7 and later know script
// flags.
type luaScript struct{ plain, allowOOM *redis.Script }

const allowOOM = "#!lua flags=allow-oom\n"

// newScript returns a script that a full Redis refuses.
func newScript(source string) *luaScript { return &luaScript{plain: redis.NewScript(source)} }

// newFreeingScript returns a script that also runs on a full Redis.
func newFreeingScript(source string) *luaScript {
	return &luaScript{plain: redis.NewScript(source), allowOOM: redis.NewScript(allowOOM + source)}
}

// of returns the form of the script that this Redis knows.
func (x *luaScript) of(s *Store) *redis.Script {
	if x.allowOOM != nil && s.flags.Load() {
		return x.allowOOM
	}
	return x.plain
}

// run runs the form of the script that this Redis knows.
func (x *luaScript) run(ctx context.Context, s *Store, keys []string, args ...any) *redis.Cmd {
	return x.of(s).Run(ctx, s.rdb, keys, args...)
}

// scripts are the scripts of a Store. A full Redis refuses new tasks and claims. It still accepts results, renewals and
// heartbeats.
type scripts struct {
	transact, transactOpening, open, move, settle, claim, renew, heartbeat, bestEffort, storing, counts, marks, rights, unused, drop, link *luaScript
}

// addsData reports whether the script adds tasks or definitions. If Redis is full, the caller of such a script gets [ErrFull].
func (s *scripts) addsData(script *luaScript) bool {
	return script == s.open || script == s.transactOpening || script == s.storing
}

// transacting returns the code before transact.lua.
func transacting() string { return prelude + places + limiting + opening + endings + deciding + needs }

// claiming returns the code before claim.lua.
func claiming() string { return prelude + places + limiting + starting + positions + ordering }

// linking returns the code before link.lua.
func linking() string { return prelude + places + opening }

func loadScripts() scripts {
	return scripts{
		transact:        newFreeingScript(transacting() + transactSource),
		transactOpening: newScript(transacting() + transactSource),
		open:            newScript(prelude + places + opening + openSource),
		move:            newFreeingScript(prelude + places + limiting + endings + moving + moveSource),
		settle:          newFreeingScript(prelude + places + endings + moving + settleSource),
		claim:           newScript(claiming() + claimSource), renew: newFreeingScript(prelude + renewSource),
		heartbeat: newFreeingScript(prelude + heartbeatSource), bestEffort: newFreeingScript(prelude + bestEffortSource), storing: newScript(prelude + bestEffortSource),
		counts: newScript(countsSource), marks: newFreeingScript(prelude + places + opening + marksSource), rights: newFreeingScript(prelude + rightsSource),
		unused: newFreeingScript(prelude + unusedSource), drop: newFreeingScript(prelude + dropSource),
		link: newFreeingScript(linking() + linkSource),
	}
}

// Scripts returns the SHA-1 of each script, in its form without script flags. Without a password, the embedded Redis
// runs only these scripts.
func Scripts() []string {
	all := loadScripts()
	var sums []string
	for _, script := range []*luaScript{
		all.transact, all.transactOpening, all.open, all.move, all.settle, all.claim, all.renew,
		all.heartbeat, all.bestEffort, all.counts, all.marks, all.rights, all.unused, all.drop,
		all.link, fieldsScript, namesScript, findScript, restoreScript, restoreValuesScript, pauseScript, limitUseScript, limitReturnScript, limitSetScript,
	} {
		sums = append(sums, script.plain.Hash())
	}
	return sums
}

// callSlots are the call slots of this client. A call slot makes one call at a time, and numbers its calls. Redis keeps
// the last answer of each call slot. So a repeated call gets the first answer again. A call that arrives after a later
// call of the same slot gets an error.
type callSlots struct {
	mu   sync.Mutex
	free []int
	last []uint64
	kept time.Time // when a call last renewed the expiry of the stored answers
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
	if time.Since(c.kept) > keepPause { // see the function remember in prelude.lua
		c.kept = time.Now()
		c.last[slot] += 99 - (c.last[slot]-1)%100
	}
	return slot, c.last[slot]
}

// keepPause is the longest time between two calls that renew the expiry of the stored answers.
const keepPause = time.Hour

// hasSlots reports whether this client has ever used a call slot.
func (c *callSlots) hasSlots() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.last) > 0
}

func (c *callSlots) giveBack(slot int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.free = append(c.free, slot)
}

// call runs a script in a free call slot, and repeats the call until Redis has answered.
func (s *Store) call(ctx context.Context, script *luaScript, keys []string, args func(slot int, sequence uint64) []any, want replyForm) (any, error) {
	slot, sequence := s.calls.take()
	defer s.calls.giveBack(slot)
	return s.run(ctx, script, keys, args(slot, sequence), want)
}

// run runs a script, and repeats the call until Redis has answered in the form want.
func (s *Store) run(ctx context.Context, script *luaScript, keys []string, args []any, want replyForm) (any, error) {
	reply, _, err := s.runAt(ctx, script, keys, args, want)
	return reply, err
}

// runAt is like run, but also returns the time just before the call was last sent.
func (s *Store) runAt(ctx context.Context, script *luaScript, keys []string, args []any, want replyForm) (reply any, sent time.Time, err error) {
	err = s.untilAnswered(ctx, func(ctx context.Context) error {
		var err error
		sent = time.Now()
		reply, err = script.run(ctx, s, keys, args...).Result()
		if err != nil && s.scripts.addsData(script) && strings.HasPrefix(err.Error(), "OOM") {
			return ErrFull
		}
		return inForm(reply, err, want)
	})
	s.recordRun(script, err)
	return reply, sent, unstorable(err)
}

// recordRun records that Redis has run a script. If err is an error, Redis has not run the script, and recordRun
// records nothing.
func (s *Store) recordRun(script *luaScript, err error) {
	if err == nil || err == redis.Nil { // go-redis returns redis.Nil if the script returns nothing
		s.scriptWorked.Store(true)
		if slices.Contains([]*luaScript{
			s.scripts.transact, s.scripts.transactOpening, s.scripts.open, s.scripts.move, s.scripts.settle, s.scripts.claim,
			s.scripts.renew,
		}, script) {
			s.taskMoved.Store(true)
		}
	}
}

// callOnce runs a script whose first arguments are a call slot and a sequence number. If once is false, the script gets
// no call slot, and recognizes a repeated call by its claims.
func (s *Store) callOnce(ctx context.Context, script *luaScript, keys []string, once bool, want replyForm, encode func(e *encoder)) (any, error) {
	args := func(slot string, sequence uint64) []any {
		e := encoder{args: make([]any, 0, 64)}
		e.add(slot, strconv.FormatUint(sequence, 10))
		encode(&e)
		return e.args
	}
	var reply any
	var err error
	if once {
		reply, err = s.call(ctx, script, keys, func(slot int, sequence uint64) []any { return args(strconv.Itoa(slot), sequence) }, want)
	} else {
		reply, err = s.run(ctx, script, keys, args("", 0), want)
	}
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	return reply, nil
}
