package admin

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/tdf-framework/tdf/internal/jsonview"
	"github.com/tdf-framework/tdf/internal/listing"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate"
)

// A FailureGroup is a group of failed rounds that ended in the same way, and whose most informative lines of stderr are
// similar.
type FailureGroup struct {
	ID string `json:"id"` // 8 hex digits, the same in all namespaces; Query.Failure selects by this ID
	// how the rounds ended: "exit status 3", "signal: killed" or "timed out", for example
	How string `json:"how"`
	// the most informative line of stderr, with placeholders for numbers, names and paths
	Line string `json:"line,omitempty"`

	Tasks  int `json:"tasks"`  // tasks whose last failure is in the group
	Rounds int `json:"rounds"` // failed rounds in the group, including rounds after which the task ran again

	Programs map[string]int `json:"programs"` // the number of failed rounds by program
	Workers  map[string]int `json:"workers"`  // the number of failed rounds by worker

	First time.Time `json:"first,omitzero"` // when the earliest of the rounds failed
	Last  time.Time `json:"last,omitzero"`  // when the latest of the rounds failed

	Example FailureExample `json:"example"`
}

// MarshalJSON writes times as in docs/tdf.md, "JSON".
func (g FailureGroup) MarshalJSON() ([]byte, error) { return jsonview.Marshal(g) }

// A FailureExample is one failed round of a group.
type FailureExample struct {
	ID int64 `json:"id"` // the id of the task
	// Namespace is set only if several namespaces work as one (docs/shards.md).
	Namespace string `json:"namespace,omitempty"`

	Round int    `json:"round"`
	Line  string `json:"line,omitempty"` // the round's own line, without placeholders
}

// Name returns the task's name, as [manager.Task.Name] does.
func (e *FailureExample) Name() string { return manager.TaskName(e.Namespace, e.ID) }

// Failures holds the failure groups of one page of tasks.
type Failures struct {
	Groups []FailureGroup // ordered by the number of tasks, the highest first
	// Suspects lists workers on which a program fails far more often than on other workers. Only the first page
	// contains suspects.
	Suspects []Suspect
	Looked   int    // how many tasks were read for this page; Merge adds the numbers of the pages
	Of       int64  // how many tasks must be read for all pages together
	Next     string // the cursor of the next page; "" on the last page
}

// Failures groups the failed rounds of the tasks that a query selects. If the query has neither states nor outcomes nor
// ids, it selects the tasks that failed, timed out or expired, including archived tasks. If the query has a worker,
// only rounds of that worker count. The query's FailureBy chooses the line by which rounds are similar. Failures reads
// one page of tasks, like [manager.Manager.Page]. [Failures.Merge] combines pages. If the query or the cursor is
// invalid, the error is a *[manager.QueryError].
func (a *Admin) Failures(ctx context.Context, q manager.Query, cursor string) (Failures, error) {
	if err := listing.Validate(q, cursor); err != nil {
		return Failures{}, err
	}
	s := storeOf(a.redis())
	all, err := failures(ctx, s, q, cursor, listing.PageBounds)
	if err != nil || cursor != "" {
		return all, err
	}
	all.Suspects, err = suspects(ctx, s, q)
	return all, err
}

func failures(ctx context.Context, s store, q task.Query, after string, within listing.Bounds) (Failures, error) {
	if len(q.States)+len(q.Outcomes)+len(q.IDs) == 0 {
		q.Outcomes = []string{string(task.Failed), string(task.TimedOut), string(task.Expired)}
	}
	f, err := listing.New(ctx, s, q, after)
	if err != nil {
		return Failures{}, err
	}
	f.Rounds, f.Bounds = listing.FailureRounds, within
	f.Texts = func(t *task.Task) []redisstate.TextsOf { return append(errorsOf(t), listing.Searched(&f.Query, t)...) }
	groups := grouping{}
	if err := f.Each(func(t *task.Task) bool { return groups.add(t, q.Worker, q.FailureBy) }); err != nil {
		return Failures{}, err
	}
	all := Failures{Groups: groups.sorted(), Looked: f.Looked, Next: f.Next()}
	all.Of, err = toLookAt(ctx, s, &f.Query)
	return all, err
}

// errorsOf selects the texts that explain why rounds of a task failed, so that Failures reads them.
func errorsOf(t *task.Task) []redisstate.TextsOf {
	var texts []redisstate.TextsOf
	for _, f := range listing.FailuresOf(t) {
		texts = append(texts, redisstate.TextsOf{Round: f.Round, Texts: task.TextError})
	}
	return texts
}

// toLookAt returns how many tasks must be read for all pages of a query.
func toLookAt(ctx context.Context, s store, q *task.Query) (int64, error) {
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

// Merge adds the groups and the numbers of the next page.
func (f *Failures) Merge(page Failures) {
	groups := grouping{}
	for _, g := range slices.Concat(f.Groups, page.Groups) {
		groups.merge(g)
	}
	f.Groups = groups.sorted()
	f.Suspects = append(f.Suspects, page.Suspects...)
	f.Looked, f.Of, f.Next = f.Looked+page.Looked, page.Of, page.Next
}

// A grouping holds failure groups by their ids.
type grouping map[string]*FailureGroup

// add adds the failed rounds of a task. If worker is not "", it adds only rounds of the worker with this name. It
// always returns true, so that the search continues.
func (g grouping) add(t *task.Task, worker, rule string) bool {
	all := listing.FailuresOf(t)
	for i := range all {
		if worker != "" && t.Rounds.At(all[i].Round).Worker != worker {
			continue
		}
		one := groupOf(&all[i], rule)
		if i == len(all)-1 {
			one.Tasks = 1
		}
		g.merge(one)
	}
	return true
}

// groupOf returns a new group that contains only the round of this failure.
func groupOf(f *listing.Failure, rule string) FailureGroup {
	line := f.Line(rule)
	s, r := f.FingerprintOf(line), f.Task.Rounds.At(f.Round)
	g := FailureGroup{
		ID: s.ID(), How: s.How, Line: s.Line, Rounds: 1,
		Workers: map[string]int{}, Programs: map[string]int{f.Task.Program: 1},
		Example: FailureExample{ID: f.Task.ID, Round: f.Round, Line: line}, First: f.At().Std(), Last: f.At().Std(),
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
	if other.First.Before(own.First) {
		own.First = other.First
	}
	if other.Last.After(own.Last) {
		own.Last = other.Last
	}
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
