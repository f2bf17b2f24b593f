package linear

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/redistest"
)

// faultNames are the faults that a client has between its calls, beside restarts of Redis.
var faultNames = []string{
	"lose reply", "lose two replies", "truncate reply", "lose command", "cut", "give up after", "give up before",
	"late copy", "flush scripts", "lose counter",
}

// fault begins a fault of the client's next step. The function cancel ends the context of this step.
func (c *client) fault(cancel func()) {
	name := faultNames[c.rand.IntN(len(faultNames))]
	c.h.count(name)
	skip := c.rand.IntN(2) // the fault hits the first or the second script of the step
	match := func(command []string) bool {
		if redistest.Scripts(command) {
			skip--
			return skip < 0
		}
		return false
	}
	giveUp := func(command []string) bool {
		hit := match(command)
		if hit {
			cancel()
		}
		return hit
	}
	switch name {
	case "lose reply":
		c.proxy.DropReplies(1, match)
	case "lose two replies":
		c.proxy.DropReplies(2, match)
	case "truncate reply":
		c.proxy.TruncateReplies(1, match)
	case "lose command":
		c.proxy.DropCommands(1, match)
	case "cut":
		c.proxy.Cut()
	case "give up after":
		c.proxy.DropReplies(1, giveUp)
	case "give up before":
		c.proxy.DropCommands(1, giveUp)
	case "late copy":
		c.sent.sendAgain(c.h.raw, c.rand.IntN)
	case "flush scripts":
		c.h.raw.ScriptFlush(context.Background()) // Redis may be away
	case "lose counter":
		c.h.raw.Del(context.Background(), c.store.Keys.TaskID())
	}
}

// sent are the scripts that a client has called. If a call was repeated, its first copy may still arrive much later.
type sent struct {
	mu  sync.Mutex
	all [][]any
}

// sendAgain sends one of the last calls again.
func (s *sent) sendAgain(raw *redis.Client, choose func(int) int) {
	s.mu.Lock()
	last := slices.Clone(s.all[max(0, len(s.all)-12):])
	s.mu.Unlock()
	if len(last) > 0 {
		raw.Do(context.Background(), last[choose(len(last))]...) // nobody waits for the answer
	}
}

func (s *sent) add(cmds ...redis.Cmder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range cmds {
		if args := c.Args(); strings.HasPrefix(c.Name(), "eval") && writes(fmt.Sprint(args[3])) {
			s.all = append(s.all, slices.Clone(args))
		}
	}
}

// writes reports whether a script with this first key moves tasks.
func writes(key string) bool {
	return strings.Contains(key, ":calls:") || strings.HasSuffix(key, ":due")
}

func (s *sent) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (s *sent) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		s.add(cmd)
		return next(ctx, cmd)
	}
}

func (s *sent) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		s.add(cmds...)
		return next(ctx, cmds)
	}
}
