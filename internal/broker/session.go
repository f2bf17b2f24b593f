package broker

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/lazy"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/worker/resources"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// Bounds of what a worker may say about itself. A grace period of the namespace is at least as long as the longest
// lease, so a lease is short.
const (
	leastLease, usualLease, longestLease = task.Seconds(1), task.Seconds(60), task.Seconds(300)

	maxNames     = 16 << 20 // bytes of a token's registrations in a week, as if all had the size of the largest
	mostSlots    = 100_000
	mostQueues   = 100
	mostTags     = 256
	mostPrograms = 1000
	keptRuns     = 100 // of a heartbeat, for people
	longestHost  = 253
)

// Errors of calls with a session.
var (
	errNoSession = task.NewError(task.CodeNotFound, "no worker has this session; register the worker")
	errReplaced  = task.NewError(task.CodeTaken, "another worker has taken the name; end the tasks of this session")
	errManyNames = task.NewError(task.CodeFull, "the token has registered too many names of workers within a week, "+
		"or too large ones; use names again")
	errNotOwn = task.NewError(task.CodeForbidden, "the claim is not one of this worker; nothing was done")
)

// An invalidError means that a call of a worker is invalid. Nothing was done.
type invalidError struct{ Reason string }

func (e *invalidError) Error() string { return e.Reason }

// Code returns the error's code (docs/manager.md, "Codes of errors").
func (*invalidError) Code() task.Code { return task.CodeInvalid }

func invalid(format string, a ...any) error { return &invalidError{fmt.Sprintf(format, a...)} }

// A Registration is what a worker says about itself.
type Registration struct {
	Name     string   `json:"name" doc:"1 to 100 letters, digits, dots, hyphens and underscores; the worker is TOKEN/NAME, so each token has its own names"`
	Host     string   `json:"host,omitempty" doc:"where the worker runs, for people"`
	PID      int      `json:"pid,omitempty" doc:"its process, for people"`
	Slots    int      `json:"slots,omitempty" doc:"how many tasks it runs at once, for people; 1 if it is missing"`
	Queues   []string `json:"queues,omitempty" doc:"the queues that it serves, in this order, or with weights such as a:3 and b:1; missing: those of the token, or default"`
	Tags     []string `json:"tags,omitempty" doc:"the tags that it offers"`
	Campaign string   `json:"campaign,omitempty" doc:"it claims only tasks of this campaign that were opened with by_group; missing: tasks of all campaigns"`
	Programs []string `json:"programs,omitempty" doc:"it runs only these programs; missing: every program"`
	Sources  bool     `json:"sources,omitempty" doc:"it also claims tasks with a source, and fetches the program from there itself"`
	Lease    float64  `json:"lease,omitempty" doc:"seconds from 1 to 300 for which its name and its claims hold without a call; 60 if it is missing"`

	Resources string             `json:"resources,omitempty" doc:"what it offers, as the key resources of tdf-worker says it: auto, amounts such as cpus=8 gpus=2, or both; its claims must then say what is free"`
	Machine   *resources.Machine `json:"machine,omitempty" doc:"what the machine has, for auto"`

	offered *resources.Pool // nil if it offers no resources
}

// A Registered is the answer to a registration.
type Registered struct {
	Session string  `json:"session" doc:"names this start of the worker in all its other calls"`
	Worker  string  `json:"worker" doc:"the whole name of the worker"`
	Lease   float64 `json:"lease"`
	Lost    int     `json:"lost" doc:"the number of tasks of an earlier start that are lost, and run again"`
	Drained string  `json:"drained,omitempty" doc:"who has drained the worker; it gets no tasks until it is resumed"`

	Free  []resources.Stock `json:"free,omitempty" doc:"what a worker with resources has when it runs nothing, for its first claim"`
	Slots int               `json:"slots,omitempty" doc:"how many tasks a worker with resources runs at once, because tasks may ask for a part of a core"`
}

var validName = lazy.Regexp(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

func (r *Registration) info(t *access.Token) (w presence.WorkerInfo, err error) {
	w = presence.WorkerInfo{
		Name: t.Name + "/" + r.Name, Host: r.Host, PID: r.PID, Version: "http", State: presence.WorkerWorking,
		Slots: max(r.Slots, 1), Lease: task.Seconds(r.Lease), InProcess: true, OverHTTP: true,
		Offer: class.Offer{
			Tags: r.Tags, Handlers: r.Programs, Anything: len(r.Programs) == 0, Programs: r.Sources,
			Group: r.Campaign,
		},
	}
	if r.Lease == 0 {
		w.Lease = usualLease
	}
	if r.Sources && r.Programs != nil { // an empty list: it only fetches programs
		w.Offer.Anything, w.InProcess = false, false
	}
	switch {
	case !validName().MatchString(r.Name):
		return w, invalid("name %.100q: want 1 to 100 letters, digits, dots, hyphens and underscores, with a letter "+
			"or a digit first", r.Name)
	case len(r.Host) > longestHost || !isLine(r.Host):
		return w, invalid("host: want one line of at most %d bytes", longestHost)
	case r.PID < 0 || r.Slots < 0 || r.Slots > mostSlots:
		return w, invalid("want a pid of at least 0, and at most %d slots", mostSlots)
	case w.Lease < leastLease || w.Lease > longestLease:
		return w, invalid("lease %v: want %v to %v seconds", r.Lease, leastLease, longestLease)
	case len(r.Queues) > mostQueues || len(r.Tags) > mostTags || len(r.Programs) > mostPrograms:
		return w, invalid("want at most %d queues, %d tags and %d programs", mostQueues, mostTags, mostPrograms)
	case r.Sources && len(r.Programs) > 0:
		return w, invalid("want either programs or sources, because a worker with sources claims the tasks of every " +
			"program")
	}
	if len(r.Campaign) > task.MaxName || !isLine(r.Campaign) {
		return w, invalid("campaign %.100q: want one line of at most %d bytes", r.Campaign, task.MaxName)
	}
	for _, tag := range r.Tags {
		if err := task.CheckTag("tags", tag); err != nil {
			return w, err
		}
	}
	for _, program := range r.Programs {
		if program == "" || len(program) > task.MaxName || !isLine(program) {
			return w, invalid("programs: %.100q is no name of a program", program)
		}
	}
	if err := r.offer(&w); err != nil {
		return w, err
	}
	w.Offer.Queues, err = shares(r.Queues, t)
	return w, err
}

// offer reads which resources the worker offers.
func (r *Registration) offer(w *presence.WorkerInfo) error {
	o, err := class.ParseResourceOffer(r.Resources)
	if err != nil {
		return invalid("resources %.100q: %v", r.Resources, err)
	}
	if r.Machine == nil {
		r.Machine = &resources.Machine{}
	}
	if err := r.Machine.Check(); err != nil {
		return invalid("machine: %v", err)
	}
	if o == nil {
		return nil
	}
	r.offered = resources.New(o, r.Machine, w.Slots)
	w.Offer.Resources = r.offered.Offered()
	if w.Offer.Resources.Of(class.CPUs) == 0 {
		return invalid("resources %.100q: the machine has no cores; say so with cpus=N", r.Resources)
	}
	return nil
}

// shares returns the queues of a worker. Without queues, they are those of its token.
func shares(queues []string, t *access.Token) (all []class.QueueShare, err error) {
	if len(queues) == 0 {
		queues = t.Queues
	}
	seen := map[string]bool{}
	for _, text := range queues {
		q, err := class.ParseQueueShare(text)
		switch {
		case err != nil:
			return nil, invalid("queues: %v", err)
		case seen[q.Queue]:
			return nil, invalid("queues: %s occurs twice", q.Queue)
		}
		seen[q.Queue], all = true, append(all, q)
	}
	return all, checkQueues(&class.Offer{Queues: all}, t)
}

func checkQueues(o *class.Offer, t *access.Token) error {
	for _, q := range o.Shares() {
		if err := t.CheckQueue(q.Queue); err != nil {
			return err
		}
	}
	return nil
}

func isLine(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// A workerSession is one start of a worker.
type workerSession struct {
	worker string // its whole name
	boot   string // tells its starts apart
}

// sessionOf returns a new session. If key is not "", the session is the same for each call with this key, so that a
// registration can be repeated.
func sessionOf(worker, key string) workerSession {
	if key == "" {
		return workerSession{worker, rand.Text()}
	}
	return workerSession{worker, digest(worker, key)}
}

// ValidName reports whether a worker may have a name.
func ValidName(name string) bool { return validName().MatchString(name) }

// SessionFor returns the session that a registration of a token's worker with this key has. So an interface whose
// workers know no sessions needs to remember none.
func SessionFor(t *access.Token, name, key string) string {
	return sessionOf(t.Name+"/"+name, key).id()
}

// parseSession returns the session of a token's worker. The name of the worker begins with that of the token, so no
// token can name the worker of another.
func parseSession(t *access.Token, id string) (workerSession, error) {
	i := strings.LastIndexByte(id, '.')
	if i < 0 || !validName().MatchString(id[:i]) || len(id)-i-1 != bootLength {
		return workerSession{}, errNoSession
	}
	return workerSession{t.Name + "/" + id[:i], id[i+1:]}, nil
}

const bootLength = 26

func (s workerSession) id() string {
	_, name, _ := strings.Cut(s.worker, "/")
	return name + "." + s.boot
}

// digest returns 130 bits of a digest as text.
func digest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return base32.StdEncoding.EncodeToString(sum[:])[:bootLength]
}

// claimIDs returns the first part of the claim ids of a claim. The request tells the claims of the session apart.
func (s workerSession) claimIDs(request string) string {
	return request + "~" + digest("claim", s.worker, s.boot, request)
}

// owns reports whether a claim id is one of this session.
func (s workerSession) owns(claim string) bool {
	request, rest, _ := strings.Cut(claim, "~")
	_, number, _ := strings.Cut(rest, ".")
	n, err := strconv.ParseUint(number, 10, 64)
	return err == nil && claim == fmt.Sprintf("%s.%d", s.claimIDs(request), n)
}

// Register takes the name of a worker, and gives up the tasks of its earlier start. A call with the same key, if it is
// not "", repeats the registration. If another start with the name is alive, the error is a
// *[presence.NameTakenError].
func (b *Broker) Register(ctx context.Context, t *access.Token, key string, r Registration) (Registered, error) {
	w, err := r.info(t)
	if err != nil {
		return Registered{}, err
	}
	s := sessionOf(w.Name, key)
	w.Boot = s.boot
	_, known, _, err := b.store.Worker(ctx, w.Name)
	if err == nil {
		err = b.checkNames(ctx, t, r.size(), known)
	}
	if err != nil {
		return Registered{}, err
	}
	drained, giveUp, err := b.store.Register(ctx, w)
	if err != nil {
		return Registered{}, err
	}
	out := Registered{Session: s.id(), Worker: w.Name, Lease: float64(w.Lease), Drained: drained}
	if r.offered != nil {
		out.Free, out.Slots = r.offered.Stocks(), max(w.Slots, resources.MostRounds(w.Offer.Resources))
	}
	if giveUp == 0 {
		return out, nil
	}
	if out.Lost, err = b.giveUp(ctx, w.Name, giveUp); err != nil {
		return Registered{}, err
	}
	_, err = b.store.Beat(ctx, w.Name, s.boot, presence.HeartbeatChanges{GaveUp: true})
	return out, heartbeatError(err)
}

// size returns about how many bytes Redis needs for the worker.
func (r *Registration) size() int {
	n := 1 << 10
	for _, all := range [][]string{{r.Name, r.Host, r.Campaign, r.Resources}, r.Queues, r.Tags, r.Programs} {
		for _, text := range all {
			n += len(text) + 1
		}
	}
	return n
}

// checkNames returns an error if a token has registered too many names for registrations of this size, because Redis
// keeps each of them for a week.
func (b *Broker) checkNames(ctx context.Context, t *access.Token, size int, known bool) error {
	most := maxNames / size
	if known {
		most++ // it is one of them
	}
	n, err := b.store.NamesUnder(ctx, t.Name+"/", most-1)
	if err == nil && n >= most {
		return errManyNames
	}
	return err
}

// giveUp gives up the tasks of an earlier start. It reads all running tasks, so a Broker does it for one worker at a
// time.
func (b *Broker) giveUp(ctx context.Context, worker string, since task.Time) (int, error) {
	select {
	case b.givingUp <- struct{}{}:
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	defer func() { <-b.givingUp }()
	return b.store.GiveUp(ctx, worker, since)
}

// A visit is a call of a worker that has the name.
type visit struct {
	workerSession
	presence.WorkerStatus
	now task.Time
}

// visit reads the worker of a session.
func (b *Broker) visit(ctx context.Context, t *access.Token, id string) (v visit, err error) {
	if v.workerSession, err = parseSession(t, id); err != nil {
		return v, err
	}
	var known bool
	v.WorkerStatus, known, v.now, err = b.store.Worker(ctx, v.worker)
	switch {
	case err != nil:
		return v, err
	case !known:
		return v, errNoSession
	case v.Boot != v.boot:
		return v, errReplaced
	case v.State == presence.WorkerGone:
		return v, presence.ErrSignedOff
	}
	return v, checkQueues(&v.Offer, t)
}

// A Beat is the answer to a heartbeat.
type Beat struct {
	Lease   float64 `json:"lease"`
	Drained string  `json:"drained,omitempty" doc:"who has drained the worker; it gets no tasks until it is resumed"`
}

// Heartbeat reports that a worker is alive, the ids of the tasks that it runs, and what it has free.
func (b *Broker) Heartbeat(ctx context.Context, t *access.Token, id string, runs []int64, free []resources.Stock) (Beat,
	error,
) {
	v, err := b.visit(ctx, t, id)
	if err != nil {
		return Beat{}, err
	}
	runs = runs[:min(len(runs), keptRuns)]
	changes := presence.HeartbeatChanges{Runs: &runs}
	pool, err := v.pool(free)
	if pool != nil {
		changes.Used = pool.Used()
	}
	if err == nil {
		err = b.beat(ctx, &v, changes)
	}
	return Beat{float64(v.Lease), v.Drained}, err
}

// beat sends a heartbeat.
func (b *Broker) beat(ctx context.Context, v *visit, beat presence.HeartbeatChanges) (err error) {
	v.Drained, err = b.store.Beat(ctx, v.worker, v.boot, beat)
	return heartbeatError(err)
}

// heartbeatError returns the error of a call whose heartbeat has this error.
func heartbeatError(err error) error {
	if errors.As(err, new(*presence.NameTakenError)) {
		return errReplaced
	}
	return err
}

// beatIfDue sends a heartbeat if the last one is old, so that a worker that makes other calls need not send any.
func (b *Broker) beatIfDue(ctx context.Context, v *visit) error {
	if since := v.now.Sub(v.Seen); since >= 0 && since < v.Lease/4 {
		return nil
	}
	return b.beat(ctx, v, presence.HeartbeatChanges{})
}

// pool returns the resources of the worker, of which this is free, or nil if the worker offers none, or says nothing.
func (v *visit) pool(free []resources.Stock) (*resources.Pool, error) {
	if v.Offer.Resources == nil || free == nil {
		return nil, nil
	}
	pool, err := resources.Restore(free, v.whole())
	if err != nil {
		return nil, invalid("free: %v", err)
	}
	return pool, nil
}

// whole returns what the worker has when it runs nothing.
func (v *visit) whole() class.Amounts {
	all := append(slices.Clone(v.Offer.Resources), class.Amount{Name: class.Slots, Units: int64(v.Slots) * class.Scale})
	slices.SortFunc(all, func(a, b class.Amount) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// SignOff ends a session, and frees the name. The worker must release its tasks before, because nobody renews their
// leases now.
func (b *Broker) SignOff(ctx context.Context, t *access.Token, id string) error {
	v, err := b.visit(ctx, t, id)
	if err == nil {
		err = b.beat(ctx, &v, presence.HeartbeatChanges{Runs: new([]int64), Gone: true})
	}
	if errors.Is(err, presence.ErrSignedOff) {
		return nil
	}
	return err
}
