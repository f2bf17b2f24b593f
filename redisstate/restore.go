package redisstate

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/tdf-framework/tdf/internal/class"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/index"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

// Limits for one call of restore.lua, so that other clients of Redis wait only a few milliseconds.
const (
	maxTasksPerRestore  = 100
	maxFieldsPerRestore = 5000
	maxBytesPerRestore  = maxBytesPerCall / 2
)

// Restore writes tasks that [Record.Validate] accepts, with their old ids. Each task gets entries in the list of its
// state, in the index of its group, and in `due`. Restore leaves existing tasks unchanged, so it may be repeated after
// an error. New tasks will get higher ids than the restored tasks. Restore returns the number of tasks that it has
// written.
//
// If another task has the id of a record, the error wraps [ErrIDTaken]. If Redis has reached its maxmemory, the error
// wraps [ErrFull].
func (s *Store) Restore(ctx context.Context, records ...Record) (written int, err error) {
	for len(records) > 0 {
		n := restoreBatch(records)
		put, err := s.restore(ctx, 0, records[:n])
		if written += put; err != nil {
			return written, err
		}
		records = records[n:]
	}
	return written, nil
}

// restore makes one call. It also reserves the ids up to the highest id of the records, and up to the given last id.
func (s *Store) restore(ctx context.Context, last int64, records []Record) (written int, err error) {
	for i := range records {
		last = max(last, records[i].ID)
	}
	e := &conn.Args{}
	e.Add(s.Keys.TaskPrefix(), s.Keys.GroupPrefix(), s.Keys.UpdatesPrefix(), strconv.FormatInt(last, 10))
	addHoldingStates(e, true)
	e.Count(len(records))
	for i := range records {
		addRecord(e, &records[i])
	}
	if err := s.nameRecords(ctx, records); err != nil {
		return 0, err
	}
	keys := append([]string{s.Keys.Due(), s.Keys.TaskID(), s.Keys.Unique()}, s.listKeys()...)
	reply, err := s.Run(ctx, "restore tasks", lua.Restore, keys, e.All, conn.IsNumber)
	if err != nil {
		return 0, err
	}
	if written = conn.Number(reply); written < 0 {
		return 0, fmt.Errorf("restore task %d: %w", -written, ErrIDTaken)
	}
	return written, nil
}

// restoreBatch returns how many of the records fit into the next call. It returns at least 1.
func restoreBatch(records []Record) int {
	return conn.Batch(len(records), conn.AtMost(maxTasksPerRestore),
		conn.Bound{Limit: maxFieldsPerRestore, Amount: func(i int) int {
			return len(records[i].Hash) + len(records[i].Updates)
		}},
		conn.Bound{Limit: maxBytesPerRestore, Amount: func(i int) int { return records[i].size() }})
}

// record adds the arguments of one task, as the header of restore.lua describes them. If the state of the task is
// unknown, the task gets no entry in a list. The audit later finds and repairs it.
func addRecord(e *conn.Args, r *Record) {
	t, _ := tdf.ParseTask(r.ID, r.withoutLinks()) // an invalid task is restored as it is
	list, look, key, limit, place := 0, "-", "", "", ""
	if t.HoldsKey() {
		key = t.Unique
	}
	score := tdf.Time(0)
	if code := slices.Index(tdf.Lists, t.State); code >= 0 {
		places := tdf.Placement{ID: r.ID, Task: t}.Reindex("")
		list, score = code+4, places.Score.Min
		if places.NextDue.Min < tdf.Never {
			look = places.NextDue.Min.String()
		}
	}
	switch t.State {
	case tdf.Open:
		t.Apart = t.PlacedIn == class.Plain // as in the namespace of the dump
		place = t.OpenPlace()
	case tdf.Running:
		limit = t.LimitKey
	}
	e.All = append(e.All, r.ID, list, place, index.GroupCode(t.State))
	e.Add(score.String(), index.Pair(t.Group, t.Queue), r.Hash[tdf.RoundField(0, string(tdf.Open))], look, key, limit)
	hash := r.withoutLinks()
	e.Count(len(hash))
	for name, value := range hash {
		e.Add(name, value)
	}
	e.Count(len(r.Updates))
	for _, u := range r.Updates {
		e.Add(fmt.Sprintf("%d-%d", u.Round, u.Number), u.Time.String(), u.Line)
	}
}

// nameRecords is like [programs.Archives.NameDefinitions], for a call that restores tasks.
func (s *Store) nameRecords(ctx context.Context, records []Record) error {
	sums := map[string]bool{}
	for i := range records {
		sums[tdf.StoredProgram(records[i].Hash["source"])] = true
	}
	return s.NamePrograms(ctx, sums)
}
