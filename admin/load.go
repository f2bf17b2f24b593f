package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

// ErrOccupied is the error of loading a dump into a namespace that contains tasks.
var ErrOccupied = tdf.NewError(tdf.CodeConflict, "a dump can only be loaded into a namespace without tasks")

// Loaded counts the programs and tasks of a dump that are now in the namespace: those that this load has written, and
// those that were already there.
type Loaded struct {
	Dumped
	There int64 `json:"there"` // tasks that an earlier, interrupted load of the same dump wrote
	// values of the dump that were not loaded, because the namespace has other values, and keeps them
	Kept int64 `json:"kept"`
}

// Load loads a dump that [Admin.Dump] wrote, from this namespace or from another one. The
// namespace must contain no tasks; otherwise the error wraps [ErrOccupied]. If the dump is invalid, the error wraps a
// *[DumpError]. If reading from r fails, the error is not a DumpError. If r is a file, Load checks the whole dump
// before it writes anything. After an error, Loaded contains the programs and tasks that were written before.
//
// Tasks keep their ids and states. Running tasks belong to their workers until their leases run out. If tasks are
// opened during the load, they get other ids. Load does not change the settings, pauses, limits, marks of groups and
// records of stages that the namespace already has. Load counts the values that differ, and logs a warning about each
// of the first 20. To continue an interrupted load, load the same dump again.
func (a *Admin) Load(ctx context.Context, r io.Reader) (Loaded, error) {
	s := a.redis()
	highest, err := checkDump(ctx, r)
	if err != nil {
		return Loaded{}, err
	}
	l := &loading{Admin: a, store: s, last: highest}
	err = readDump(ctx, r, l.take)
	if errors.As(err, new(*DumpError)) && l.begun {
		err = fmt.Errorf("%w; %d of its tasks were loaded; load the whole dump again, or use another namespace", err,
			l.done.Tasks)
	}
	return l.done, err
}

// checkDump checks a dump and returns its highest id. It then seeks back to the beginning. If r cannot seek, checkDump
// does nothing.
func checkDump(ctx context.Context, r io.Reader) (highest int64, err error) {
	file, ok := r.(io.Seeker)
	if !ok {
		return 0, nil
	}
	begin, err := file.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, nil
	}
	err = readDump(ctx, r, func(_ context.Context, line *dumpLine) error {
		highest = max(highest, line.record().ID)
		return nil
	})
	if err != nil {
		return 0, err
	}
	_, err = file.Seek(begin, io.SeekStart)
	return highest, err
}

// A loading is the state of one call of Load.
type loading struct {
	*Admin
	store   *redisstate.Store
	begun   bool
	last    int64 // the highest id of the dump that is known so far
	pending []redisstate.Record
	bytes   int
	done    Loaded
}

// The loading writes its pending tasks when they reach one of these limits.
const (
	pendingTasks = 1000
	pendingBytes = 16 << 20
)

// mostKeptLogged is the largest number of values that Load names in its log.
const mostKeptLogged = 20

func (l *loading) take(ctx context.Context, line *dumpLine) error {
	switch {
	case line.Header != nil:
		return l.begin(ctx, line)
	case line.End == nil:
		return line.kind.load(l, ctx, line)
	}
	if err := l.flush(ctx); err != nil {
		return err
	}
	return l.store.EndRestore(ctx)
}

func (l *loading) program(ctx context.Context, line *dumpLine) error {
	source, err := l.store.PutProgram(ctx, line.Text)
	if err == nil && line.Pinned {
		err = l.store.PinPrograms(ctx, tdf.StoredProgram(source))
	}
	if err == nil {
		l.done.Programs++
	}
	return err
}

// fields writes fields of a hash. The tasks before it come first, because a group without tasks gets no mark.
func (l *loading) fields(ctx context.Context, line *dumpLine) error {
	if err := l.flush(ctx); err != nil {
		return err
	}
	kept, err := l.store.RestoreFields(ctx, line.Key, line.Hash)
	if err != nil {
		return err
	}
	l.done.Values += int64(len(line.Hash) - len(kept))
	for _, name := range slices.Sorted(maps.Keys(kept)) {
		if l.done.Kept++; l.done.Kept <= mostKeptLogged {
			l.parts.Log.Warn("a value of the dump is not loaded", "key", line.Key, "name", name,
				"value", line.Hash[name], "why", kept[name])
		}
	}
	return nil
}

// begin reserves the namespace and the ids for this dump.
func (l *loading) begin(ctx context.Context, line *dumpLine) error {
	l.last = max(l.last, line.Header.LastID)
	mark := programName(line.raw)
	before, err := l.store.RestoreUnderWay(ctx)
	if err == nil && before == "" {
		before, err = mark, l.mustBeEmpty(ctx)
	}
	if err == nil && before == mark {
		before, err = l.store.BeginRestore(ctx, mark, l.last)
	}
	if err != nil {
		return err
	}
	if before != mark {
		return fmt.Errorf("another dump is being loaded into namespace %s, or its load was interrupted: %w; load "+
			"that dump again, or use another namespace",
			l.parts.Config.Namespace, ErrOccupied)
	}
	l.begun = true
	return nil
}

func (l *loading) mustBeEmpty(ctx context.Context) error {
	counts, err := l.store.Counts(ctx)
	if n := counts.Total(); n > 0 {
		return fmt.Errorf("namespace %s has %d tasks: %w; use another namespace", l.parts.Config.Namespace, n,
			ErrOccupied)
	}
	return err
}

func (l *loading) task(ctx context.Context, line *dumpLine) error {
	r := line.record()
	if _, has := r.Hash["namespace"]; has {
		r.Hash["namespace"] = l.parts.Config.Namespace
	}
	l.pending = append(l.pending, r)
	l.bytes += len(line.raw)
	if len(l.pending) < pendingTasks && l.bytes < pendingBytes {
		return nil
	}
	return l.flush(ctx)
}

func (l *loading) flush(ctx context.Context) error {
	written, err := l.store.Restore(ctx, l.pending...)
	if errors.Is(err, redisstate.ErrIDTaken) {
		return fmt.Errorf("%w; remove that task and load the dump again, or use another namespace", err)
	}
	if err != nil {
		return err
	}
	l.done.Tasks += int64(len(l.pending))
	l.done.There += int64(len(l.pending) - written)
	l.pending, l.bytes = l.pending[:0], 0
	return nil
}
