package results

import (
	"cmp"
	"context"
	"maps"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/tdf-framework/tdf/internal/listing"
	"github.com/tdf-framework/tdf/internal/managing"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate"
)

// Bounds of a table, which are small enough for a process to have some tables.
const (
	maxTableRows    = 100_000
	maxTableCells   = 2_000_000
	maxTableColumns = 100
)

// Pauses between two passes through all finished tasks of a campaign.
const (
	sweepPause = time.Minute      // if tasks were retried or removed
	sweepEvery = 10 * time.Minute // because a retry or a removal may go unnoticed
)

// A Choice says of which tasks a table has the results, and where they come from.
type Choice struct {
	Namespace string // that of the manager with which the table is refreshed
	// the table is one of so many that are joined, and which have the bounds of a table together; 0 means 1
	Of      int
	Group   string
	Owner   string // "" for the tasks of all owners
	Fields  string // one of Sources
	Pattern string // "" or a pattern; see [ParsePattern]
}

// A Table holds parameters and results of the finished tasks of a campaign as columns. It stays in memory, so that a
// plot that is drawn again and again reads only tasks that have finished since: Redis finds them by time. Of a large
// campaign, the table has a sample of at most 100,000 tasks, which depends only on their ids.
//
// The row of a task that was retried or removed stays for up to a minute, or for up to ten if the table cannot notice
// the change. A table has at most 100 columns, and none with a name of more than 100 bytes.
type Table struct {
	choice  Choice
	pattern *regexp.Regexp

	maxRows, maxCells int // maxTableRows and maxTableCells, except in tests

	reading sync.Mutex // held by Refresh, so that calls at the same time do not read one after the other

	mu      sync.Mutex
	names   *columns // names of parameters and results
	columns []*Column
	byName  map[string]*Column
	ids     []int64
	row     map[int64]int // the row of each id
	pass    []uint32      // the last pass that has seen the row
	oneOf   uint64        // the table has one of so many tasks; a power of two

	now   tablePass
	passN uint32
	swept time.Time // when the last pass through all tasks began, by the clock of this process
	since task.Time // tasks that finished before are in the table, by Redis's clock
	most  int64     // the largest number of finished tasks since then
}

// A tablePass is a walk through finished tasks, which many calls of Refresh may need.
type tablePass struct {
	open, all  bool // whether it is under way; whether it reads all finished tasks
	cursor     string
	begun      task.Time
	looked, of int64
}

// fixedNumbers and fixedTexts are columns that each task has.
var (
	fixedNumbers = []string{"seconds", "cpu_seconds", "max_rss", "round"}
	fixedTexts   = []string{"outcome", "worker", "program"}
)

// NewTable returns an empty table. The error says that the pattern is invalid.
func NewTable(c Choice) (*Table, error) {
	pattern, err := ParsePattern(c.Pattern)
	if err != nil {
		return nil, err
	}
	of := max(1, c.Of)
	t := &Table{choice: c, pattern: pattern, maxRows: maxTableRows / of, maxCells: maxTableCells / of}
	t.clear()
	return t, nil
}

func (t *Table) clear() {
	t.names, t.columns, t.byName = newColumns(cmp.Or(t.choice.Fields, FromAuto)), nil, map[string]*Column{}
	t.ids, t.pass, t.row, t.oneOf = nil, nil, map[int64]int{}, 1
	if t.pattern != nil {
		for _, name := range t.pattern.SubexpNames() { // the first name is ""
			t.names.taken[matchName(name)] = true
		}
	}
}

// Refresh reads tasks that have finished since the last call, for at most the given time, and a call of Redis more. If
// that is too short, the next call goes on from there.
func (t *Table) Refresh(ctx context.Context, m *manager.Manager, longest time.Duration) error {
	if !t.reading.TryLock() {
		return nil // another call reads
	}
	defer t.reading.Unlock()
	return t.refresh(ctx, managing.Of(m).Store, time.Now(), longest)
}

// store lists the methods of *redisstate.Store that this package uses.
type store interface {
	listing.Store
	Now(ctx context.Context) (task.Time, error)
	Counts(ctx context.Context, groups ...string) (task.Counts, error)
}

func (t *Table) refresh(ctx context.Context, s store, now time.Time, longest time.Duration) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.now.open {
		if err := t.begin(ctx, s, now); err != nil {
			return err
		}
	}
	return t.walk(ctx, s, longest)
}

// begin begins a pass: through all finished tasks, or those that have finished since the last pass.
func (t *Table) begin(ctx context.Context, s store, now time.Time) error {
	begun, err := s.Now(ctx)
	if err != nil {
		return err
	}
	counts, err := s.Counts(ctx, t.choice.Group)
	if err != nil {
		return err
	}
	all, finished := counts.Total(), counts.Finished()
	fewer := finished < t.most || t.oneOf == 1 && int64(len(t.ids)) > finished
	sweep := t.swept.IsZero() || now.Sub(t.swept) >= sweepEvery || fewer && now.Sub(t.swept) >= sweepPause
	t.now = tablePass{open: true, all: sweep, begun: begun, of: finished}
	t.passN++
	t.most = max(t.most, finished)
	if sweep {
		t.swept, t.most = now, finished
		for t.oneOf > 1 && uint64(all)/t.oneOf < uint64(t.maxRows/4) {
			t.oneOf /= 2 // most tasks were removed
		}
		for uint64(all)/t.oneOf > uint64(t.maxRows) {
			t.oneOf *= 2
		}
		t.thin()
	}
	return nil
}

// walk goes on with a pass.
func (t *Table) walk(ctx context.Context, s store, longest time.Duration) error {
	q := task.Query{Group: t.choice.Group, Owner: t.choice.Owner, States: task.FinishedStates, Order: task.OldestFirst}
	if !t.now.all {
		q.Since = (t.since - 1).Std() // a second more, in case that the clock of Redis was set back a little
	}
	w, err := listing.New(ctx, s, q, t.now.cursor)
	if err != nil {
		return err
	}
	w.Bounds.Time, w.ByTime, w.Sample = longest, !t.now.all, t.has
	fromOutput := t.choice.Fields != FromResult || t.pattern != nil
	w.Add(func(x *task.Task) []redisstate.TextsOf {
		texts := task.TextResult
		if fromOutput {
			texts |= task.TextOutput
		}
		return []redisstate.TextsOf{listing.OfTask, {Round: x.LastRun(), Texts: texts}}
	})
	until := time.Now().Add(longest)
	rows := 0
	err = w.Each(func(x *task.Task) bool {
		t.put(manager.TaskOf(x, false))
		rows++
		return rows%20 > 0 || time.Now().Before(until) // patterns take time, too
	})
	t.now.looked += int64(w.Looked)
	if t.now.cursor = w.Next(); err != nil || t.now.cursor != "" {
		return err
	}
	if t.now.all {
		t.sweep()
	}
	t.since, t.now.open = t.now.begun, false
	return nil
}

// has reports whether a task belongs to the sample.
func (t *Table) has(id int64) bool { return uint64(id)*0x9e3779b97f4a7c15>>32&(t.oneOf-1) == 0 }

// put writes the row of a task.
func (t *Table) put(x *manager.Task) {
	if !t.has(x.ID) {
		return
	}
	row, known := t.row[x.ID]
	if !known {
		row = len(t.ids)
		t.row[x.ID], t.ids, t.pass = row, append(t.ids, x.ID), append(t.pass, 0)
	}
	for _, c := range t.columns {
		c.set(row, "")
	}
	t.pass[row] = t.passN
	if len(t.names.taken) < 2*maxTableColumns {
		t.names.collect(x)
	}
	values := map[string]string{}
	t.names.putAll(values, x)
	if x.InputReplaced { // a plot would show its result at the parameters of another input
		for _, name := range t.names.order {
			delete(values, name)
		}
	}
	for _, name := range slices.Concat(t.names.order, t.names.resultOrder) {
		t.set(row, name, values[name])
	}
	if t.pattern != nil {
		values = matches(t.pattern, x.Output())
		for _, name := range slices.Sorted(maps.Keys(values)) {
			t.set(row, name, values[name])
		}
	}
	cells := fixedCells(x)
	for _, name := range slices.Concat(fixedNumbers, fixedTexts) {
		t.set(row, name, cells[name])
	}
	if len(t.ids) > t.maxRows || len(t.ids)*len(t.columns) > t.maxCells {
		t.oneOf *= 2
		t.thin()
	}
}

// set sets a value. A column begins with its first value.
func (t *Table) set(row int, name, value string) {
	c := t.byName[name]
	if c == nil {
		if value == "" || len(t.columns) >= maxTableColumns || len(name) > maxText {
			return
		}
		c = &Column{Name: name}
		t.byName[name], t.columns = c, append(t.columns, c)
	}
	c.set(row, value)
}

// thin removes the rows that do not belong to the sample.
func (t *Table) thin() {
	t.keep(func(row int) bool { return t.has(t.ids[row]) })
}

// sweep removes the rows that a pass through all tasks has not seen, and clears the table if no rows are left, so that
// it forgets columns.
func (t *Table) sweep() {
	t.keep(func(row int) bool { return t.pass[row] == t.passN })
	if len(t.ids) == 0 {
		t.clear()
	}
}

// keep removes rows.
func (t *Table) keep(keeps func(row int) bool) {
	for _, c := range t.columns {
		c.pad(len(t.ids))
	}
	n := 0
	for row, id := range t.ids {
		if !keeps(row) {
			delete(t.row, id)
			continue
		}
		t.ids[n], t.pass[n], t.row[id] = id, t.pass[row], n
		for _, c := range t.columns {
			c.move(row, n)
		}
		n++
	}
	t.ids, t.pass = t.ids[:n], t.pass[:n]
	for _, c := range t.columns {
		c.Numbers, c.Codes = c.Numbers[:min(n, len(c.Numbers))], c.Codes[:min(n, len(c.Codes))]
	}
}

// A TableStatus says what a table has.
type TableStatus struct {
	Names   []string // of the columns, parameters first
	Results []string // the names of the columns of results and matches
	Rows    int
	OneOf   int  // the table has one of so many tasks
	Behind  bool // tasks are still to be read
	// Looked is the number of finished tasks that the pass has passed, of about Of.
	Looked, Of int64
}

// Status says what the table has.
func (t *Table) Status() TableStatus {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := TableStatus{Rows: len(t.ids), OneOf: int(t.oneOf), Behind: t.now.open, Looked: t.now.looked, Of: t.now.of}
	order := map[string]int{}
	for i, name := range slices.Concat(t.names.order, t.names.resultOrder) {
		order[name] = i - 1_000_000 // before all others
	}
	for i, c := range t.columns {
		s.Names = append(s.Names, c.Name)
		if _, known := order[c.Name]; !known {
			order[c.Name] = i
		}
	}
	slices.SortStableFunc(s.Names, func(a, b string) int { return order[a] - order[b] })
	for _, name := range s.Names {
		if !slices.Contains(t.names.order, name) && !slices.Contains(fixedNumbers, name) &&
			!slices.Contains(fixedTexts, name) {
			s.Results = append(s.Results, name)
		}
	}
	return s
}

// Columns returns copies of some columns, with the same rows. For a name without a column, it returns nil.
func (t *Table) Columns(names ...string) []*Column {
	all, _ := t.columnsOf(names)
	return all
}

// columnsOf does the same as Columns, and returns the number of rows.
func (t *Table) columnsOf(names []string) (all []*Column, rows int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, name := range names {
		c := t.byName[name]
		if c == nil {
			all = append(all, nil)
			continue
		}
		c.pad(len(t.ids))
		all = append(all, &Column{
			Name: c.Name, Numbers: slices.Clone(c.Numbers), Codes: slices.Clone(c.Codes),
			Texts: slices.Clone(c.Texts),
		})
	}
	return all, len(t.ids)
}
