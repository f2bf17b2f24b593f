package presence

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

const (
	day  = task.Seconds(24 * 60 * 60)
	week = 7 * day
)

// UsuallyRemembered is how long Redis remembers a worker after its last heartbeat, at least.
const UsuallyRemembered = week

// A WorkerInfo is a worker's report about itself. The worker sends it with each heartbeat.
type WorkerInfo struct {
	Name, Host, Version string
	PID                 int
	Process             string // identifies the process among the processes of all machines
	Lease               task.Seconds
	State               string // starting, working, draining or gone
	Slots               int
	Runs                []int64 // the ids of the tasks that the worker runs
	Shortage            string  // one line about what its slots lack, or ""
	Offer               class.Offer
	Used                class.Amounts // how much of the offered resources the rounds have; nil without an offer
	OverHTTP            bool          // a client of the HTTP API; a full Redis refuses its registration
	InProcess           bool          // a Runner runs the rounds in the worker's process; it fetches no programs

	// Boot identifies this start of the worker among all workers that ever have the name. "" means the boot id of this
	// client.
	Boot string
}

// inProcess is the value of a worker's property `runner` in Redis if a Runner runs the rounds in the worker's own
// process.
const inProcess = "in process"

// inProcessNoSource is the value if such a worker has handlers for all programs, but runs only tasks without a source.
const inProcessNoSource = inProcess + ", without sources"

// remembered returns how long Redis remembers the worker. A worker is alive until the end of its lease.
func (w *WorkerInfo) remembered() task.Seconds {
	return max(UsuallyRemembered, 3*w.Lease)
}

// runsText returns ids as the property `runs`.
func runsText(ids []int64) string {
	runs := make([]string, len(ids))
	for i, id := range ids {
		runs[i] = strconv.FormatInt(id, 10)
	}
	return strings.Join(runs, " ")
}

func (w *WorkerInfo) fields() []any {
	runner := ""
	switch {
	case w.InProcess && w.Offer.Anything && !w.Offer.Programs:
		runner = inProcessNoSource
	case w.InProcess:
		runner = inProcess
	}
	return []any{
		"host", w.Host, "pid", w.PID, "process", w.Process, "version", w.Version, "lease", w.Lease.String(),
		"remember", w.remembered().String(), "state", w.State, "slots", w.Slots, "runs", runsText(w.Runs),
		"shortage", w.Shortage, "runner", runner,
		"queues", queuesText(w.Offer.Queues), "tags", strings.Join(w.Offer.Tags, ","), "handlers",
		strings.Join(w.Offer.Handlers, "\n"),
		"group", w.Offer.Group, "resources", w.Offer.Resources.String(),
		"resources_used", w.Used.String(),
	}
}

// A NameTakenError means that another worker has the name (docs/operations.md, "Names of workers").
type NameTakenError struct {
	Name, Host, PID string
	Process, Boot   string    // process and boot id of the worker that has the name
	Seen, Now       task.Time // Seen is the time of that worker's last heartbeat; Now is the time of this error
	Lease           task.Seconds
	GraceUntil      task.Time // end of the grace period; until then, that worker may be alive without a heartbeat
}

func (e *NameTakenError) Error() string {
	text := fmt.Sprintf("the worker's name %s belongs to a worker on host %s, pid %s, last seen %.1f s ago",
		e.Name, e.Host, e.PID, float64(e.Now.Sub(e.Seen)))
	wait := e.Wait()
	if wait > 0 {
		return fmt.Sprintf("%s; Redis was away, so that worker may be alive; try again in %.0f s", text, float64(wait))
	}
	if e.Now >= e.Seen {
		return fmt.Sprintf("%s; stop that worker, choose another name, or wait until the lease of %.0f s has ended",
			text, float64(e.Lease))
	}
	return text
}

// Wait returns the rest of the grace period if only this period keeps the name. Otherwise it returns 0.
func (e *NameTakenError) Wait() task.Seconds {
	if e.Now.Sub(e.Seen) <= e.Lease {
		return 0
	}
	return max(0, e.GraceUntil.Sub(e.Now))
}

// Code returns the error's code (docs/manager.md, "Codes of errors").
func (*NameTakenError) Code() task.Code { return task.CodeRefused }

// NameTaken makes it a broker.NameTaken.
func (*NameTakenError) NameTaken() {}

// Silent reports whether the lease of the worker that has the name has ended without a new heartbeat. Even then, that
// worker may be alive, because Redis may have been unavailable during the lease. It is known to be gone only if it
// sends no heartbeat for another lease.
func (e *NameTakenError) Silent() bool {
	return e.Now.Sub(e.Seen) > e.Lease && e.Now >= e.GraceUntil
}

// A PriorOwner describes the worker that has a name. It contains only the facts that are known to a new worker that
// wants this name.
type PriorOwner struct {
	Gone string // boot id of the prior owner if it is known to be gone; otherwise ""

	// Seen is the time of the prior owner's last heartbeat. From the time Since until now, Redis was available and
	// received no later heartbeat. Both times are 0 if they are unknown.
	Seen, Since task.Time
}

// TakeName registers a worker that starts. If another live worker has the name, the error is a *[NameTakenError]. If a
// user has drained the worker, drained is the user's name, and otherwise it is "". TakeName also returns the time by
// Redis's clock since which the worker has the name. Older claims under this name belong to earlier workers.
func (s *Presence) TakeName(ctx context.Context, w WorkerInfo, before PriorOwner) (drained string, since task.Time,
	err error,
) {
	a, err := s.heartbeat(ctx, w, "1", before)
	return a.drained, a.at, err
}

// Register registers a worker whose calls come from another process, and may be repeated. It takes the name as TakeName
// does, or changes the registration. If giveUp is not 0, the claims that an earlier worker of this name made before
// this time must be given up; GaveUp of [HeartbeatChanges] then says that this is done. Until then, each repeated call
// returns the same time.
func (s *Presence) Register(ctx context.Context, w WorkerInfo) (drained string, giveUp task.Time, err error) {
	a, err := s.heartbeat(ctx, w, "2", PriorOwner{})
	return a.drained, a.giveUp, err
}

// WorkerHeartbeat reports that a worker is alive, and its state. It returns the same drained as [Presence.TakeName]. If
// another worker has taken the name, the error is a *[NameTakenError].
func (s *Presence) WorkerHeartbeat(ctx context.Context, w WorkerInfo) (drained string, err error) {
	a, err := s.heartbeat(ctx, w, "", PriorOwner{})
	return a.drained, err
}

// HeartbeatChanges are what a heartbeat of a registered worker changes, beside the time of the last heartbeat.
type HeartbeatChanges struct {
	Runs   *[]int64      // the ids of the tasks that the worker runs; nil keeps those of the last heartbeat
	Used   class.Amounts // what of its resources the worker has given to them
	Gone   bool          // the worker signs off
	GaveUp bool          // the claims of the earlier worker are given up: see [Presence.Register]
}

// ErrSignedOff means that a worker has signed off, or that Redis does not know it.
var ErrSignedOff = task.NewError(task.CodeExpired, "the worker has signed off; register it again")

// Beat sends a heartbeat of a worker that Register has registered. It changes nothing else of the registration, so a
// registration or a sign-off at the same time holds. It returns the same drained as [Presence.TakeName]. The error is
// [ErrSignedOff], or a *[NameTakenError] if another worker has taken the name.
func (s *Presence) Beat(ctx context.Context, name, boot string, b HeartbeatChanges) (drained string, err error) {
	var fields []any
	if b.Runs != nil {
		fields = append(fields, "runs", runsText(*b.Runs), "resources_used", b.Used.String())
	}
	if b.Gone {
		fields = append(fields, "state", WorkerGone)
	}
	if b.GaveUp {
		fields = append(fields, "giving_up", "")
	}
	a, err := s.callHeartbeat(ctx, WorkerInfo{Name: name, Boot: boot}, "+", PriorOwner{}, fields)
	return a.drained, err
}

func heartbeatForm(reply any) bool {
	n := len(conn.List(reply))
	return conn.ManyTexts(reply) && (n == 1 || n == 4 || n == 9)
}

// A heartbeatAnswer is the answer to a heartbeat.
type heartbeatAnswer struct {
	drained    string
	at, giveUp task.Time
}

func (s *Presence) heartbeat(ctx context.Context, w WorkerInfo, taking string, before PriorOwner) (heartbeatAnswer,
	error,
) {
	return s.callHeartbeat(ctx, w, taking, before, w.fields())
}

func (s *Presence) callHeartbeat(
	ctx context.Context, w WorkerInfo, taking string, before PriorOwner, fields []any,
) (a heartbeatAnswer, err error) {
	keys := []string{
		s.Conn.Keys.Worker(w.Name), s.Conn.Keys.Workers(), s.Conn.Keys.WorkerNames(),
		s.Conn.Keys.WorkerCount(), s.Conn.Keys.WorkerNumber(w.Name), s.Conn.Keys.GraceUntil(), s.Conn.Keys.Servers(),
	}
	args := []any{
		w.Name, cmp.Or(w.Boot, s.Conn.Boot()), taking, before.Gone, "", "",
		int64(math.Ceil(float64(w.remembered()))),
	}
	if before.Since > 0 {
		args[4], args[5] = before.Seen.String(), before.Since.String()
	}
	args = append(args, fields...)
	script := lua.Heartbeat
	if w.OverHTTP {
		script = lua.Register
	}
	reply, err := s.Conn.Run(ctx, "register worker "+w.Name, script, keys, args, heartbeatForm)
	if err != nil {
		return a, err
	}
	parts := conn.List(reply)
	switch len(parts) {
	case 1:
		return a, ErrSignedOff
	case 4:
		a.drained = conn.Text(parts[1])
		a.giveUp, _ = task.ParseTime(conn.Text(parts[3])) // 0 for ""
		a.at, err = task.ParseTime(conn.Text(parts[2]))
		return a, err
	}
	e := &NameTakenError{
		Name: w.Name, Host: conn.Text(parts[3]), PID: conn.Text(parts[4]),
		Process: conn.Text(parts[5]), Boot: conn.Text(parts[6]),
	}
	e.Now, _ = task.ParseTime(conn.Text(parts[1]))
	e.GraceUntil, _ = task.ParseTime(conn.Text(parts[2]))
	e.Seen, _ = task.ParseTime(conn.Text(parts[7]))
	e.Lease, _ = task.ParseSeconds(conn.Text(parts[8]))
	return a, e
}

const readLeases = "read the leases of workers"

// LongestLease returns the longest lease of all workers that sent a heartbeat within the last day.
func (s *Presence) LongestLease(ctx context.Context, now task.Time) (task.Seconds, error) {
	names, err := conn.Ask(ctx, s.Conn, readLeases, func(r redis.Cmdable) *redis.StringSliceCmd {
		return r.ZRangeArgs(ctx, redis.ZRangeArgs{
			Key: s.Conn.Keys.Workers(), ByScore: true, Start: now.Add(-day).String(), Stop: "+inf", Count: 10_000,
		})
	})
	if err != nil {
		return 0, err
	}
	leases, err := conn.AskEach(ctx, s.Conn, readLeases, names, func(p redis.Pipeliner, name string) *redis.StringCmd {
		return p.HGet(ctx, s.Conn.Keys.Worker(name), "lease")
	})
	var longest task.Seconds
	for _, l := range leases {
		if lease, err := task.ParseSeconds(l.Val()); err == nil && lease < task.Forever {
			longest = max(longest, lease)
		}
	}
	return longest, err
}
