package redisstate

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/index"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

// CheckNamed checks that the stored programs and the blobs that new tasks name are stored, and renews their last use.
func (s *Store) CheckNamed(ctx context.Context, definitions []task.Properties) error {
	if err := s.Programs.CheckPrograms(ctx, definitions); err != nil {
		return err
	}
	return s.Blobs.CheckBlobs(ctx, definitions)
}

// An Opened is the answer to one definition.
type Opened struct {
	ID       int64 // 0 if Redis refused to open the task
	Existing bool  // whether the task already existed: it holds the unique key of the definition
}

// OpenAll opens tasks. The answers have the order of the definitions. If any definition is invalid, OpenAll opens no
// task. If a stored program that a task names does not exist, the error wraps [programs.ErrNoProgram], and OpenAll
// opens no task. If the condition does not hold, OpenAll opens nothing, and the error is [ErrGroupTaken] or
// [ErrGroupExtended].
//
// One atomic call opens up to 250 tasks or 4 MiB, and more tasks need several calls. If any definition has a unique key
// (docs/lifecycle.md, "Unique tasks"), each task is opened on its own, unless tasks wait for others of the same call
// (docs/lifecycle.md, "Dependencies"): each of these is opened after the tasks that it waits for. If Redis refuses a
// task or a call fails, OpenAll returns the error, and the answers that Redis has given.
func (s *Store) OpenAll(
	ctx context.Context, who string, on Condition, definitions ...task.Properties,
) ([]Opened, error) {
	if err := task.ValidateAll(definitions); err != nil {
		return nil, err
	}
	if err := s.CheckNamed(ctx, definitions); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(definitions, func(d task.Properties) bool { return d.HasPlaces() }) {
		return s.openGraph(ctx, who, on, definitions)
	}
	if slices.ContainsFunc(definitions, func(d task.Properties) bool { return d.Unique != "" }) {
		return s.openUnique(ctx, who, on, definitions)
	}
	ids, err := s.openPlain(ctx, who, on, definitions)
	opened := make([]Opened, len(ids))
	for i, id := range ids {
		opened[i].ID = id
	}
	return opened, err
}

// Open is like OpenAll, but returns only the ids: ascending ones, if no task has a unique key or waits for another
// task.
func (s *Store) Open(ctx context.Context, who string, definitions ...task.Properties) ([]int64, error) {
	opened, err := s.OpenAll(ctx, who, "", definitions...)
	var ids []int64
	for _, o := range opened {
		ids = append(ids, o.ID)
	}
	return ids, err
}

// openPlain opens tasks without unique keys that do not wait for each other. It returns their ids, which ascend.
func (s *Store) openPlain(
	ctx context.Context, who string, on Condition, definitions []task.Properties,
) ([]int64, error) {
	definitions, err := s.keepApart(ctx, definitions)
	if err != nil {
		return nil, err
	}
	var ids []int64
	for call := s.openCall(who, on, definitions); len(call.definitions) > 0; {
		definitions = definitions[len(call.definitions):]
		var next openCall
		var encoding sync.WaitGroup
		if len(definitions) > 0 {
			encoding.Go(func() { // while Redis runs this call
				next = s.openCall(who, on.later(), definitions)
				var args conn.Args
				next.encode(&args)
				next.encode = func(e *conn.Args) { e.All = append(e.All, args.All...) }
			})
		}
		opened, err := s.openAtOnce(ctx, call)
		encoding.Wait()
		ids = append(ids, opened...)
		if err != nil {
			return ids, err
		}
		call = next
	}
	return ids, nil
}

// An openCall is one call that opens tasks.
type openCall struct {
	on          Condition
	definitions []task.Properties
	encode      func(e *conn.Args) // adds the arguments from the name of the caller on
}

// openCall returns a call for the first definitions: as many as fit into one call.
func (s *Store) openCall(who string, on Condition, definitions []task.Properties) openCall {
	if len(definitions) == 0 {
		return openCall{}
	}
	definitions = definitions[:OpenBatch(definitions)]
	return openCall{on: on, definitions: definitions, encode: func(e *conn.Args) {
		e.All = slices.Grow(e.All, 50+8*len(definitions))
		e.Add(who)
		addOpenings(e, s.Keys.Namespace(), on, definitions)
	}}
}

func (s *Store) openAtOnce(ctx context.Context, call openCall) ([]int64, error) {
	if err := s.Conn.Ready(ctx); err != nil {
		return nil, err
	}
	maxTasks, err := s.maxTasks(ctx, true)
	if err != nil {
		return nil, err
	}
	if err := s.Programs.NameDefinitions(ctx, call.definitions); err != nil {
		return nil, err
	}
	keys := append([]string{
		s.Keys.Calls(s.Conn.Boot()), s.Keys.TaskID(), s.Keys.List(task.Open), s.Keys.WakeOpen(),
	}, s.countedLists(maxTasks)...)
	reply, err := s.Conn.CallOnce(ctx, lua.Open, keys, true, conn.IsText, func(e *conn.Args) {
		e.Add(strconv.FormatInt(s.Conn.IDs.Highest(), 10), maxTasks)
		call.encode(e)
	})
	if conn.Unanswered(err) {
		return nil, err
	}
	unit := Unit{If: call.on, Open: call.definitions}
	o := outcome(&unit, conn.Text(reply))
	s.got(o.IDs)
	if o.Err == nil && !conn.CallIsRepeated(ctx) {
		s.countOpened(unit.Open, o)
	}
	return o.IDs, cmp.Or(o.Err, err)
}

// got records ids that Redis has given out.
func (s *Store) got(ids []int64) {
	if len(ids) > 0 {
		s.Conn.IDs.Got(slices.Max(ids))
	}
}

func addOpenings(e *conn.Args, namespace string, on Condition, definitions []task.Properties) {
	fields := openFields(namespace, definitions)
	placements := make([]placement, len(definitions))
	var indexes, places names
	for i := range definitions {
		placements[i].indexes = indexes.add(index.Pair(definitions[i].Group, definitions[i].Queue))
		placements[i].place = places.add(firstPlace(&definitions[i]))
	}
	shared := sharedFields(fields)
	for i := range definitions {
		fields[i] = without(fields[i], shared)
		score, look := rules.Schedule(&definitions[i])
		placements[i].score, placements[i].look = moment(score), moment(look)
	}
	names, same := commonNames(fields), allEqual(placements)
	plain := on == "" && names != nil && same && placements[0] == placement{look: "-"}
	if !plain {
		e.Add("", string(on))
		e.Count(index.GroupCode(task.Open))
		e.Strings(indexes.all)
		e.Strings(places.all)
	}
	e.Count(2 * len(shared))
	for _, f := range shared {
		e.Add(f.Name, f.Value)
	}
	e.Strings(names)
	if !plain {
		e.Flag(names == nil)
		e.Flag(same)
		if same {
			addPlacement(e, placements[0])
		}
	}
	e.Count(len(definitions))
	for i := range definitions {
		if !same {
			addPlacement(e, placements[i])
		}
		if names == nil {
			addFields(e, fields[i])
			continue
		}
		for _, f := range fields[i] {
			e.Add(f.Value)
		}
	}
}

// names are the different names in a call, such as the names of indexes. The number of a name counts from 1. The number
// of the name "" is 0.
type names struct {
	all    []string
	number map[string]int
}

// add adds a name if it is new, and returns its number.
func (n *names) add(name string) int {
	if name == "" || n.number[name] > 0 {
		return n.number[name]
	}
	if n.number == nil {
		n.number = map[string]int{}
	}
	n.all = append(n.all, name)
	n.number[name] = len(n.all)
	return len(n.all)
}

// A placement says where open.lua puts a new task: the number of the names of its indexes, from 1, or 0; the number of
// its place, from 1, or 0; its score; and its due time.
type placement struct {
	indexes, place int
	score, look    string
}

func addPlacement(e *conn.Args, p placement) {
	e.Count(p.indexes)
	e.Count(p.place)
	e.Add(p.score, p.look)
}

func allEqual(placements []placement) bool {
	return !slices.ContainsFunc(placements, func(p placement) bool { return p != placements[0] })
}

// commonNames returns the names of the fields if all tasks have fields with the same names in the same order.
// Otherwise, it returns nil.
func commonNames(fields [][]task.Field) []string {
	for _, of := range fields {
		if !slices.EqualFunc(of, fields[0], func(a, b task.Field) bool { return a.Name == b.Name }) {
			return nil
		}
	}
	names := make([]string, len(fields[0]))
	for i, f := range fields[0] {
		names[i] = f.Name
	}
	return names
}

// maxOpenedAtOnce is the largest number of tasks that one atomic call opens. The limit keeps the call short, because
// Redis serves no other client meanwhile.
const maxOpenedAtOnce = 250

// OpenBatch returns how many of the definitions, counted from the first, one atomic call can open. If there is a
// definition, it returns at least 1.
func OpenBatch(definitions []task.Properties) int {
	return openBatch(len(definitions), func(i int) *task.Properties { return &definitions[i] })
}

// OneOpen reports whether one atomic call of OpenAll opens all these tasks, or none of them.
func OneOpen(all []task.Properties) bool {
	return OpenBatch(all) == len(all) && !slices.ContainsFunc(all, func(d task.Properties) bool {
		return d.HasPlaces() || d.Unique != ""
	})
}

func openBatch(n int, definition func(i int) *task.Properties) int {
	return conn.Batch(n, conn.AtMost(maxOpenedAtOnce), conn.Bound{Limit: maxBytesPerCall, Amount: func(i int) int {
		return bytesOf(definition(i))
	}})
}

// openUnique opens tasks, some of which have unique keys. For each definition whose key another task holds, it returns
// the id of that task.
func (s *Store) openUnique(
	ctx context.Context, who string, on Condition, definitions []task.Properties,
) ([]Opened, error) {
	units := make([]Unit, len(definitions))
	for i := range definitions {
		units[i].Open = definitions[i : i+1]
	}
	var opened []Opened
	for on.isNew() && len(units) > 0 { // one call per definition, until one opens the first task of the group
		units[0].If = on
		outcomes, err := s.Apply(ctx, who, units[0])
		if opened, err = appendOpened(opened, outcomes, err); err != nil {
			return opened, err
		}
		if !opened[len(opened)-1].Existing {
			on = on.later()
		}
		units = units[1:]
	}
	for i := range units {
		units[i].If = on
	}
	outcomes, err := s.Apply(ctx, who, units...)
	return appendOpened(opened, outcomes, err)
}

// appendOpened appends one answer per outcome. It returns the first error of the outcomes, or else err.
func appendOpened(opened []Opened, outcomes []Outcome, err error) ([]Opened, error) {
	var refused error
	for _, o := range outcomes {
		if o.Err != nil {
			refused = cmp.Or(refused, o.Err)
			opened = append(opened, Opened{})
			continue
		}
		opened = append(opened, Opened{o.IDs[0], o.Held() > 0})
	}
	return opened, cmp.Or(refused, err)
}

// Holder returns the id of the task that was the last one to take a unique key, or 0 if there is none. The task may be
// finished or removed.
func (s *Store) Holder(ctx context.Context, key string) (int64, error) {
	text, err := conn.Ask(ctx, s.Conn, "look up a unique key", func(r redis.Cmdable) *redis.StringCmd {
		return r.HGet(ctx, s.Keys.Unique(), key)
	})
	for _, id := range conn.IDsOf([]string{text}) {
		return id, nil
	}
	return 0, err
}
