package admin

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/listing"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate"
)

// A FailureGroup is failed rounds that have in common how they ended and what they said last.
type FailureGroup struct {
	ID   string // 8 hex digits, the same wherever and whenever: what Query.Failure names
	How  string // "exit status 3", "signal: killed", "timed out", …
	Line string // the telling line of stderr, with placeholders for numbers, names and the like; "" for none

	Tasks  int // whose last failure is of this group
	Rounds int // failed rounds of the group, forgiven ones too

	Workers, Programs map[string]int // and how many of the rounds each had

	Example     FailureExample // the first that was found
	First, Last tdf.Time       // when the earliest and the latest of the rounds had failed
}

// A FailureExample is a failed round.
type FailureExample struct {
	ID    int64
	Round int
	Line  string // its own telling line, whole
}

// Failures is what failed rounds have in common, as far as tasks were looked at.
type Failures struct {
	Groups []FailureGroup // those of most tasks first
	// Suspects are workers on which a program fails far more often than on others, among the rounds that
	// ended last. Only the first page tells.
	Suspects []Suspect
	Looked   int    // how many tasks were looked at
	Of       int64  // how many there are to look at, as of the page that came last
	Next     string // names the next page; "": this is the last one
}

// Failures groups the failed rounds of tasks that failed, timed out or expired, archived or not, or of those that q
// means, where that names states, outcomes or ids. Where it names a worker, only the rounds of that worker count. Pages are those of [manager.Manager.Find], and put together
// by [Failures.Merge].
func (a *Admin) Failures(ctx context.Context, q manager.Query, after string) (Failures, error) {
	s, err := a.redis(ctx)
	if err != nil {
		return Failures{}, err
	}
	all, err := failures(ctx, s, q, after, listing.PageBounds)
	if err == nil && after == "" {
		all.Suspects, err = suspects(ctx, s, q)
	}
	return all, err
}

func failures(ctx context.Context, s store, q listing.Query, after string, within listing.Bounds) (Failures, error) {
	if len(q.States)+len(q.Outcomes)+len(q.IDs) == 0 {
		q.Outcomes = []string{string(tdf.Failed), string(tdf.TimedOut), string(tdf.Expired)}
	}
	f, err := listing.New(ctx, s, q, after)
	if err != nil {
		return Failures{}, err
	}
	f.Rounds, f.Bounds = listing.FailureRounds, within
	f.Texts = func(t *tdf.Task) []redisstate.TextsOf { return append(errorsOf(t), f.Query.Searched(t)...) }
	groups := grouping{}
	if err := f.Each(func(t *tdf.Task) bool { return groups.add(t, q.Worker) }); err != nil {
		return Failures{}, err
	}
	all := Failures{Groups: groups.sorted(), Looked: f.Looked, Next: f.Next()}
	all.Of, err = toLookAt(ctx, s, &f.Query)
	return all, err
}

// errorsOf are the texts that tell why a task's rounds failed.
func errorsOf(t *tdf.Task) []redisstate.TextsOf {
	var texts []redisstate.TextsOf
	for _, f := range listing.FailuresOf(t) {
		texts = append(texts, redisstate.TextsOf{Round: f.Round, Texts: tdf.TextError})
	}
	return texts
}

// toLookAt counts the tasks that a query has to look at.
func toLookAt(ctx context.Context, s store, q *listing.Query) (int64, error) {
	if len(q.IDs) > 0 {
		return int64(len(q.IDs)), nil
	}
	counts, err := s.Counts(ctx, groupsOf(q.Group)...)
	var n int64
	for _, state := range q.States {
		n += counts[state]
	}
	return n, err
}

// Merge adds what a later page has found.
func (f *Failures) Merge(page Failures) {
	groups := grouping{}
	for _, g := range slices.Concat(f.Groups, page.Groups) {
		groups.merge(g)
	}
	f.Groups = groups.sorted()
	f.Suspects = append(f.Suspects, page.Suspects...)
	f.Looked, f.Of, f.Next = f.Looked+page.Looked, page.Of, page.Next
}

// A grouping is groups by their ids.
type grouping map[string]*FailureGroup

// add takes the failed rounds of a task, those of one worker alone if that is named; it always wants more.
func (g grouping) add(t *tdf.Task, worker string) bool {
	all := listing.FailuresOf(t)
	for i := range all {
		if worker != "" && t.Rounds.At(all[i].Round).Worker != worker {
			continue
		}
		one := groupOf(&all[i])
		if i == len(all)-1 {
			one.Tasks = 1
		}
		g.merge(one)
	}
	return true
}

// groupOf returns the group of this round alone.
func groupOf(f *listing.Failure) FailureGroup {
	line := f.Line()
	s, r := f.FingerprintOf(line), f.Task.Rounds.At(f.Round)
	g := FailureGroup{
		ID: s.ID(), How: s.How, Line: s.Line, Rounds: 1,
		Workers: map[string]int{}, Programs: map[string]int{f.Task.Program: 1},
		Example: FailureExample{f.Task.ID, f.Round, line}, First: f.At(), Last: f.At(),
	}
	if r.Worker != "" {
		g.Workers[r.Worker] = 1
	}
	return g
}

func (g grouping) merge(other FailureGroup) {
	own := g[other.ID]
	if own == nil {
		other.Workers, other.Programs = maps.Clone(other.Workers), maps.Clone(other.Programs)
		g[other.ID] = &other
		return
	}
	own.Tasks += other.Tasks
	own.Rounds += other.Rounds
	addUp(own.Workers, other.Workers)
	addUp(own.Programs, other.Programs)
	own.First, own.Last = min(own.First, other.First), max(own.Last, other.Last)
}

func addUp(sum, more map[string]int) {
	for name, n := range more {
		sum[name] += n
	}
}

func (g grouping) sorted() []FailureGroup {
	all := make([]FailureGroup, 0, len(g))
	for _, group := range g {
		all = append(all, *group)
	}
	slices.SortFunc(all, func(a, b FailureGroup) int {
		return cmp.Or(cmp.Compare(b.Tasks, a.Tasks), cmp.Compare(b.Rounds, a.Rounds), cmp.Compare(a.ID, b.ID))
	})
	return all
}
