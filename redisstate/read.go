package redisstate

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
)

// A Want defines which parts of each task [Store.Read] reads.
type Want struct {
	Fields Fields
	Rounds Rounds // the rounds that are read if Fields includes Facts

	// TextsFrom is the number of the first round whose texts Whole includes.
	TextsFrom int

	// Keep reports whether a task is selected, after its Fields were read. A nil Keep selects all tasks. If Keep does
	// not select a task, its Stored.Task is nil.
	Keep func(*task.Task) bool
	// KeepHead reports whether Keep may select a task, of which only Head was read. With it, Read saves reading the
	// facts of large tasks. A nil KeepHead saves nothing.
	KeepHead func(*task.Task) bool

	// Texts returns the texts to read of a selected task. If Texts is nil, Read reads texts only if Fields includes
	// Whole.
	Texts func(*task.Task) []TextsOf
	// MaxBytes limits the bytes of the texts of all tasks together, or with Whole, of the tasks; 0 means no limit. If
	// they exceed the limit, Read returns only the first tasks, but at least one.
	MaxBytes int

	sized []bool      // whether readSized has read each task; nil if it has read none
	small []task.Hash // all properties of each small task; nil for others
}

// Rounds selects which rounds of a task are read. The zero Rounds selects none.
type Rounds struct{ last, from, to int }

// LastRounds selects the last n rounds, including the current one.
func LastRounds(n int) Rounds { return Rounds{last: n} }

// OneRound selects round n.
func OneRound(n int) Rounds { return Rounds{from: n, to: n + 1} }

// numbers returns the number of the first selected round, and the number after the last selected round.
func (r Rounds) numbers(current int) (from, to int) {
	if r.last > 0 {
		return max(0, current-r.last+1), current + 1
	}
	return r.from, r.to
}

// Stored contains the parts of a task that [Store.Read] has read.
type Stored struct {
	ID int64
	// Task is nil if the task does not exist. Task.Unread and Round.Unread list the texts that were not read; see
	// [task.Task.IsSummary].
	Task *task.Task
	// Invalid is the reason why the definition is invalid, usually a *[task.PropertyError]. With Rules, Read checks only
	// open and finished tasks. With Facts or Whole, it checks all tasks. A property that is too long is invalid, and
	// Read skips it.
	Invalid error

	// Lists are the lists that hold the task, and Scores are its scores in these lists. Both are set only if
	// Want.Fields includes Lists.
	Lists  []task.State
	Scores []task.Time

	Bytes int // the number of bytes of the texts that were read
}

// Placement returns the task and the lists that hold it.
func (x *Stored) Placement() rules.Placement {
	return rules.Placement{ID: x.ID, Task: x.Task, Invalid: x.Invalid, Lists: x.Lists, Scores: x.Scores}
}

// Read reads tasks, and returns them in the order of their ids in the call. It returns all of them, unless MaxBytes is
// set.
//
// It reads a few MiB at once, so that Redis can serve other clients in between:
//   - With Whole, it reads a small task at one moment, and a large task in pieces.
//   - If a large task moves between two pieces, Read reads it again, but only a few times. If it moves each time, Redis
//     refuses a Move that is based on the values.
//   - With Facts alone, it reads a small task at one moment, too.
//   - Otherwise, it reads a task in up to three steps, and texts after that. The task may move in between.
//   - A finished task in the list archived is archived, also if its state says otherwise. But with Lists, Read returns
//     the state that the task has.
//
// With Rules alone, the first step reads the state, the round and the revision. So if the task moves before a later
// step, Redis refuses a Move that is based on these values.
func (s *Store) Read(ctx context.Context, ids []int64, want Want) ([]Stored, error) {
	hashes, tooLong, err := s.readHashes(ctx, ids, &want)
	if err != nil {
		return nil, err
	}
	if want.Fields&Lists == 0 {
		if err := s.readArchived(ctx, ids, hashes); err != nil {
			return nil, err
		}
	}
	stored := make([]Stored, len(hashes))
	for i, h := range hashes {
		stored[i] = want.parse(ids[i], h, tooLong[i])
	}
	if want.Fields&Lists != 0 {
		if err := s.readLists(ctx, stored); err != nil {
			return nil, err
		}
	}
	if want.Fields&(Rules|Whole) != 0 {
		if err := s.markApart(ctx, stored); err != nil {
			return nil, err
		}
	}
	if want.Texts == nil {
		return stored, nil
	}
	return s.readTexts(ctx, stored, &want)
}

// ReadOne reads one task. If the task does not exist, the error wraps [task.ErrNoTask]. But if want.Fields is 0 or
// Lists, ReadOne reads no property. So it cannot notice that the task does not exist, and returns a task without
// properties.
func (s *Store) ReadOne(ctx context.Context, id int64, want Want) (Stored, error) {
	stored, err := s.Read(ctx, []int64{id}, want)
	if err != nil {
		return Stored{}, err
	}
	if stored[0].Task == nil {
		return Stored{}, fmt.Errorf("task %d: %w", id, task.ErrNoTask)
	}
	return stored[0], nil
}

const readTasks = "read tasks"

// readHashes reads the properties of each task that want.Fields includes.
func (s *Store) readHashes(ctx context.Context, ids []int64, want *Want) (hashes []task.Hash, tooLong []error,
	err error,
) {
	if want.Fields&Whole != 0 {
		return s.wholeHashes(ctx, ids, cmp.Or(want.MaxBytes, math.MaxInt), want.TextsFrom)
	}
	hashes, tooLong = make([]task.Hash, len(ids)), make([]error, len(ids))
	for i := range hashes {
		hashes[i] = task.Hash{}
	}
	if want.Fields&Facts != 0 && want.Fields&(Rules|Result|Lists|Blobs) == 0 {
		if err := s.readSized(ctx, ids, hashes, want); err != nil {
			return nil, nil, err
		}
	}
	for step, names := range want.steps() {
		err := s.readFields(ctx, ids, hashes, tooLong, func(i int) []string {
			if want.isSized(i) {
				return nil
			}
			return names(hashes[i])
		})
		if err == nil && step == 0 && want.KeepHead != nil {
			err = s.keepHeads(ctx, ids, hashes, want)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	if want.Fields&Rules != 0 {
		err = s.readUnclaimed(ctx, ids, hashes)
	}
	return hashes, tooLong, err
}

// keepHeads forgets the tasks that KeepHead does not select.
func (s *Store) keepHeads(ctx context.Context, ids []int64, hashes []task.Hash, want *Want) error {
	var of []int64
	var heads []task.Hash
	for i, h := range hashes {
		if !want.isSized(i) && len(h) > 0 {
			of, heads = append(of, ids[i]), append(heads, h)
		}
	}
	err := s.readArchived(ctx, of, heads)
	for i, h := range heads {
		if t, _ := task.ParseSummary(of[i], h); !want.KeepHead(t) {
			clear(h)
		}
	}
	return err
}

// steps returns the names of the properties to read in each step. The names in a step depend on what the earlier steps
// have read.
func (w *Want) steps() (steps []func(task.Hash) []string) {
	always := func(names []string) func(task.Hash) []string { return func(task.Hash) []string { return names } }
	switch {
	case w.Fields&Rules != 0:
		steps = append(steps, always(firstFields), w.rules)
	case w.Fields&Result != 0:
		return append(steps, always(slices.Concat(namesOf(taskProperties, Result), roundFields(0, roundResult))),
			func(h task.Hash) []string {
				if h.Round() == 0 {
					return nil
				}
				return roundFields(h.Round(), roundResult)
			})
	case w.Fields&Facts != 0:
		steps = append(steps, always(headFields))
	case w.Fields&(Head|Source|Blobs) != 0:
		return append(steps, always(namesOf(taskProperties, w.Fields)))
	}
	if w.Fields&Facts != 0 {
		steps = append(steps, w.facts)
	}
	return steps
}

// facts returns the names of all facts of a task. The hash must contain the properties of Head.
func (w *Want) facts(h task.Hash) []string {
	if len(h) == 0 {
		return nil
	}
	names := slices.Clone(factFields)
	if w.Fields&Blobs != 0 {
		names = append(names, namesOf(taskProperties, Blobs)...)
	}
	from, to := w.Rounds.numbers(h.Round())
	for i := from; i < to; i++ {
		names = append(names, roundFields(i, roundFacts)...)
	}
	return names
}

// maxNamedLosses is the largest number of earlier rounds that are read to find out which workers lost the task.
const maxNamedLosses = 100

// rules returns the names of the properties that only some decisions need. These are properties of the current round,
// properties of earlier rounds that were lost, and the definition of a task that may start again.
func (w *Want) rules(h task.Hash) []string {
	if len(h) == 0 {
		return nil
	}
	state := task.State(h["state"])
	round := h.Round()
	names := slices.Concat(moreFields, roundFields(round, roundRules),
		[]string{lengthOf + task.RoundField(round, task.RoundError)})
	for i := max(0, round-maxNamedLosses); i < round; i++ {
		names = append(names, task.RoundField(i, task.RoundWorker), task.RoundField(i, "lost"))
	}
	if state.Finished() {
		names = append(names, task.RoundField(round, string(state))) // its retention period counts from this time
		if state == task.Archived && h["keep_outputs"] != "" {
			names = append(names, roundFields(round, settledStates)...)
		}
	}
	switch {
	case readsDefinition(state):
		names = append(names, definedBy...)
	case state == task.Running:
		names = append(names, runningOnly...)
	}
	return names
}

// readsDefinition reports whether Rules includes the definition of a task in this state.
func readsDefinition(state task.State) bool { return state == task.Open || state.Finished() }

// readUnclaimed checks rounds that were executed without a claim. These are rounds of workers of the original TDF,
// which write the two texts of a round one after the other. So readUnclaimed marks which of the two texts exist.
func (s *Store) readUnclaimed(ctx context.Context, ids []int64, hashes []task.Hash) error {
	exist := map[int]map[string]*redis.BoolCmd{}
	err := s.Conn.Pipeline(ctx, readTasks, func(p redis.Pipeliner) {
		for i, h := range hashes {
			round := h.Round()
			if h[task.RoundField(round, "executed")] == "" || h[task.RoundField(round, task.RoundClaim)] != "" {
				continue
			}
			exist[i] = map[string]*redis.BoolCmd{}
			for _, name := range roundFields(round, []string{task.RoundOutput, task.RoundError}) {
				exist[i][name] = p.HExists(ctx, s.Keys.Task(ids[i]), name)
			}
		}
	})
	for i, names := range exist {
		for name, exists := range names {
			if exists.Val() {
				hashes[i][name] = ""
			}
		}
	}
	return err
}

// parse builds a task from the properties that were read, and calls Keep.
func (w *Want) parse(id int64, h task.Hash, tooLong error) Stored {
	x := Stored{ID: id}
	if len(h) == 0 && w.Fields&^Lists != 0 {
		return x
	}
	if w.Fields&Whole != 0 {
		x.Task, x.Invalid = task.ParseTask(id, h)
		for n, r := range x.Task.Rounds {
			if n < w.TextsFrom {
				r.Unread = task.TextOutput | task.TextError | task.TextResult | task.TextTail
			}
		}
	} else {
		x.Task, x.Invalid = task.ParseSummary(id, h)
		r := x.Task.Current()
		r.HasError = r.HasError || h[lengthOf+task.RoundField(x.Task.Round, task.RoundError)] != ""
	}
	switch {
	case w.Fields&Rules != 0 && readsDefinition(x.Task.State):
		x.Task.Unread &^= task.TextInput | task.TextMeta
	case w.Fields&(Facts|Whole) == 0:
		x.Invalid = nil // the definition was not read
	}
	// ParseTask replaces a missing property by its default, so it cannot notice one that is too long
	x.Invalid = cmp.Or(tooLong, x.Invalid)
	if w.Keep != nil && !w.Keep(x.Task) {
		x.Task = nil
	}
	return x
}

// readLists sets Lists and Scores of the tasks.
func (s *Store) readLists(ctx context.Context, stored []Stored) error {
	scores := make([][]*redis.FloatCmd, len(stored))
	err := s.Conn.Pipeline(ctx, "look up tasks in the lists", func(p redis.Pipeliner) {
		for i := range stored {
			scores[i] = nil
			for _, list := range rules.Lists {
				scores[i] = append(scores[i], p.ZScore(ctx, s.Keys.List(list), strconv.FormatInt(stored[i].ID, 10)))
			}
		}
	})
	if err != nil {
		return err
	}
	for i := range stored {
		for j, list := range rules.Lists {
			if scores[i][j].Err() == nil {
				stored[i].Lists = append(stored[i].Lists, list)
				stored[i].Scores = append(stored[i].Scores, task.Time(scores[i][j].Val()))
			}
		}
	}
	return nil
}
