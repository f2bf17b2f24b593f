package presence

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

// States of a worker in its record (docs/redis.md).
const (
	WorkerStarting = "starting"
	WorkerWorking  = "working"
	WorkerDraining = "draining"
	WorkerGone     = "gone" // it has signed off
)

// A WorkerStatus is a worker's last report about itself. It also says whether the worker is drained.
type WorkerStatus struct {
	WorkerInfo
	Seen    task.Time // time of the worker's last heartbeat
	Drained string    // name of the user who has drained the worker; "" if it is not drained
}

// Alive reports whether the worker is alive at the time now: it has not signed off, and its lease has not ended.
func (w *WorkerStatus) Alive(now task.Time) bool {
	return w.State != WorkerGone && now.Sub(w.Seen) <= w.Lease
}

// Claims reports whether the worker is alive and claims tasks at the time now: it neither starts, stops nor drains.
func (w *WorkerStatus) Claims(now task.Time) bool {
	return w.Alive(now) && w.State == WorkerWorking && w.Drained == ""
}

// mostWorkers is the largest number of workers that one pipeline reads.
const mostWorkers = 1000

// Workers returns the workers that Redis remembers, ordered by name.
func (s *Presence) Workers(ctx context.Context) ([]WorkerStatus, error) {
	names, err := conn.Ask(ctx, s.Conn, "read workers", func(r redis.Cmdable) *redis.StringSliceCmd {
		return r.ZRange(ctx, s.Conn.Keys.Workers(), 0, -1)
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var all []WorkerStatus
	for page := range slices.Chunk(names, mostWorkers) {
		some, err := s.readWorkers(ctx, page)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

func (s *Presence) readWorkers(ctx context.Context, names []string) ([]WorkerStatus, error) {
	replies, err := conn.AskEach(ctx, s.Conn, "read workers", names,
		func(p redis.Pipeliner, name string) *redis.MapStringStringCmd {
			return p.HGetAll(ctx, s.Conn.Keys.Worker(name))
		})
	var all []WorkerStatus
	for i, reply := range replies {
		if h := reply.Val(); len(h) > 0 {
			all = append(all, parseWorker(names[i], h))
		}
	}
	return all, err
}

func parseWorker(name string, h map[string]string) WorkerStatus {
	w := WorkerStatus{Drained: h["drain"]}
	w.Name, w.Host, w.Version, w.Process = name, h["host"], h["version"], h["process"]
	w.State, w.Shortage, w.InProcess = h["state"], h["shortage"], runsInProcess(h)
	w.Offer, w.Boot = parseOffer(h), h["boot"]
	w.Used, _ = class.ParseAmounts(h["resources_used"])
	w.PID, _ = strconv.Atoi(h["pid"])
	w.Slots, _ = strconv.Atoi(h["slots"])
	w.Lease, _ = task.ParseSeconds(h["lease"])
	w.Seen, _ = task.ParseTime(h["seen"])
	w.Runs = conn.IDsOf(strings.Fields(h["runs"]))
	return w
}

// Worker returns a worker, and the time by Redis's clock. If Redis remembers no worker of this name, known is false.
func (s *Presence) Worker(ctx context.Context, name string) (w WorkerStatus, known bool, now task.Time, err error) {
	var h *redis.MapStringStringCmd
	var clock *redis.TimeCmd
	err = s.Conn.Pipeline(ctx, "read worker "+name, func(p redis.Pipeliner) {
		h, clock = p.HGetAll(ctx, s.Conn.Keys.Worker(name)),
			p.Time(ctx)
	})
	if err != nil {
		return w, false, 0, err
	}
	return parseWorker(name, h.Val()), h.Val()["boot"] != "", task.At(clock.Val()), nil
}

// NamesUnder returns how many of the workers that Redis remembers have names with this prefix. If the namespace has at
// most as many workers as the given number, it counts all of them, because counting them is faster.
func (s *Presence) NamesUnder(ctx context.Context, prefix string, enough int) (int, error) {
	all, err := conn.Ask(ctx, s.Conn, "count workers", func(r redis.Cmdable) *redis.IntCmd {
		return r.ZCard(ctx, s.Conn.Keys.Workers())
	})
	if err != nil || all <= int64(enough) {
		return int(all), err
	}
	n := 0
	for from := int64(0); from < all; from += mostWorkers {
		names, err := conn.Ask(ctx, s.Conn, "count workers", func(r redis.Cmdable) *redis.StringSliceCmd {
			return r.ZRange(ctx, s.Conn.Keys.Workers(), from, from+mostWorkers-1)
		})
		if err != nil {
			return 0, err
		}
		for _, name := range names {
			if strings.HasPrefix(name, prefix) {
				n++
			}
		}
	}
	return n, nil
}

// Drain makes a worker claim no more tasks from its next heartbeat on. It stores the given name of the user who drains
// the worker. If this name is "", Drain ends the drain. The drain also holds for a later worker with the same name.
// Drain returns false if Redis knows no worker with this name.
func (s *Presence) Drain(ctx context.Context, name, by string) (bool, error) {
	key, doing := s.Conn.Keys.Worker(name), "drain worker "+name
	known, err := conn.Ask(ctx, s.Conn, doing, func(r redis.Cmdable) *redis.IntCmd { return r.Exists(ctx, key) })
	if err != nil || known == 0 {
		return false, err
	}
	kept, err := conn.Ask(ctx, s.Conn, doing, func(r redis.Cmdable) *redis.StringCmd {
		return r.HGet(ctx, key, "remember")
	})
	if err != nil {
		return false, err
	}
	keep, _ := task.ParseSeconds(kept) // 0 if the worker has not written it
	return true, s.Conn.Write(ctx, doing, func(p redis.Pipeliner) { setDrain(ctx, p, key, by, keep) })
}

// setDrain sets or ends a drain. The hash of a drained worker does not expire.
func setDrain(ctx context.Context, p redis.Pipeliner, worker, by string, keep task.Seconds) {
	if by == "" {
		p.HDel(ctx, worker, "drain")
		p.Expire(ctx, worker, cmp.Or(keep, UsuallyRemembered).Std())
	} else {
		p.HSet(ctx, worker, "drain", by)
		p.Persist(ctx, worker)
	}
}

// namesForgotten is the number of names that one call of ForgetWorkers looks at.
const namesForgotten = 500

// ForgetWorkers removes names of workers that need not be remembered any more, from the list of workers and from the
// set of all names. It looks at some of them, from a place on, and returns the place where the next call continues; the
// first call has the place 0.
func (s *Presence) ForgetWorkers(ctx context.Context, from int) (next int, err error) {
	keys := []string{s.Conn.Keys.Workers(), s.Conn.Keys.WorkerNames()}
	args := []any{s.Conn.Keys.Worker(""), s.Conn.Keys.WorkerNumber(""), from, namesForgotten, UsuallyRemembered.String()}
	reply, err := s.Conn.Run(ctx, "forget workers", lua.Forget, keys, args, conn.IsNumber)
	if err != nil {
		return from, err
	}
	return conn.Number(reply), nil
}

// queuesText returns the queues of a worker as `queues=` in worker.cfg names them, such as "a:3,b:1".
func queuesText(queues []class.QueueShare) string {
	parts := make([]string, len(queues))
	for i, q := range queues {
		parts[i] = q.String()
	}
	return strings.Join(parts, ",")
}

// parseOffer reads the offer from the hash of a worker. A worker of the original TDF has none of these fields: it
// claims tasks without a queue, tags and a priority.
func parseOffer(h map[string]string) class.Offer {
	o := class.Offer{Tags: task.SplitTags(h["tags"]), Programs: true, Group: h["group"]}
	o.Resources, _ = class.ParseAmounts(h["resources"]) // nil for an invalid text, as for none
	for part := range strings.SplitSeq(h["queues"], ",") {
		if q, err := class.ParseQueueShare(part); err == nil {
			o.Queues = append(o.Queues, q)
		}
	}
	if h["handlers"] != "" {
		o.Handlers, o.Programs = strings.Split(h["handlers"], "\n"), false
	} else {
		o.Anything, o.Programs = runsInProcess(h), h["runner"] != inProcessNoSource
	}
	return o
}

// runsInProcess reports whether the worker with this hash runs the rounds in its own process.
func runsInProcess(h map[string]string) bool { return strings.HasPrefix(h["runner"], inProcess) }
