package redisstate

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
)

//go:embed restore.lua
var restoreSource string

var restoreScript = redis.NewScript(prelude + restoreSource)

// Bounds of one call: it keeps Redis from its other clients for a few ms.
const (
	maxTasksPerRestore  = 100
	maxFieldsPerRestore = 5000
	maxBytesPerRestore  = maxBytesPerCall / 2
)

// Put writes tasks as they were kept elsewhere, with the ids that they had there: into the list that
// their state names, into the index of their group, and with the moment at which the server must look at
// them. A task that is there already is left as it is, so after an error the same tasks may be put
// again; [ErrIDTaken] says that another one has its id. The counter of ids is raised to the highest of them. It
// returns how many were written; [ErrFull] says that there is no room for more. Nothing is written where any of
// the records is not a valid one.
func (s *Store) Restore(ctx context.Context, records ...Record) (written int, err error) {
	for i := range records {
		if err := records[i].Validate(); err != nil {
			return 0, err
		}
	}
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

// put makes one call; ids up to the last one given, and up to the highest of the records, are taken.
func (s *Store) restore(ctx context.Context, last int64, records []Record) (written int, err error) {
	for i := range records {
		last = max(last, records[i].ID)
	}
	e := encoder{}
	e.add(s.keys.taskPrefix(), s.keys.groupPrefix(), s.keys.updatesPrefix(), strconv.FormatInt(last, 10))
	e.count(len(records))
	for i := range records {
		e.record(&records[i])
	}
	keys := append([]string{s.keys.Due(), s.keys.taskID()}, s.listKeys()...)
	err = s.untilAnswered(ctx, func(ctx context.Context) (err error) {
		written, err = restoreScript.Run(ctx, s.rdb, keys, e.args...).Int()
		if err != nil && strings.HasPrefix(err.Error(), "OOM") {
			return ErrFull
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("putting tasks: redis: %w", err)
	}
	if written < 0 {
		return 0, fmt.Errorf("task %d: %w", -written, ErrIDTaken)
	}
	return written, nil
}

// restoreBatch returns how many of the records make up the next call: at least one.
func restoreBatch(records []Record) int {
	return batch(len(records), atMost(maxTasksPerRestore),
		bound{maxFieldsPerRestore, func(i int) int { return len(records[i].Hash) + len(records[i].Updates) }},
		bound{maxBytesPerRestore, func(i int) int { return records[i].size() }})
}

// record adds a task, as restore.lua's header lists it. One whose state is none that there is gets into no
// list: the audit finds it, and says what becomes of it.
func (e *encoder) record(r *Record) {
	t, _ := tdf.ParseTask(r.ID, r.Hash) // what makes no sense about it is not changed by being moved
	list, look := 0, "-"
	score := tdf.Time(0)
	if code := slices.Index(tdf.Lists, t.State); code >= 0 {
		places := tdf.Placement{ID: r.ID, Task: t}.Reindex("")
		list, score = code+3, places.Score.Min
		if places.NextDue.Min < tdf.Never {
			look = places.NextDue.Min.String()
		}
	}
	e.args = append(e.args, r.ID, list, groupCode(t.State))
	e.add(score.String(), t.Group, r.Hash[tdf.RoundField(0, string(tdf.Open))], look)
	e.count(len(r.Hash))
	for name, value := range r.Hash {
		e.add(name, value)
	}
	e.count(len(r.Updates))
	for _, u := range r.Updates {
		e.add(fmt.Sprintf("%d-%d", u.Round, u.Number), u.Time.String(), u.Line)
	}
}
