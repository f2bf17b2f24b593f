package retention

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/tdf-framework/tdf/fetch"
)

// A run is one call of Apply.
type run struct {
	Policy
	now      time.Time
	programs []fetch.Installed
	rounds   []*round // in the order of the journals, so that rounds of one directory are usually together
	byRound  map[string]*round
	places   map[place]*place
	found    map[string]bool // paths of the files of rounds, because a journal may name a file twice
	remover  remover
	removed  Removed
	first    error
	others   int
}

func (r *run) fail(err error) {
	switch {
	case err == nil, errors.Is(err, fs.ErrNotExist):
	case r.first == nil:
		r.first = err
	default:
		r.others++
	}
}

func (r *run) err() error {
	if r.others > 0 {
		return fmt.Errorf("%w (and %d more errors)", r.first, r.others)
	}
	return r.first
}

func (r *run) inUse(path string) bool { return r.InUse != nil && r.InUse(path) }

// cutoff returns the time before which files count as old.
func (r *run) cutoff() time.Time {
	if r.Keep == Forever {
		return time.Time{}
	}
	return r.now.Add(-r.Keep)
}

// listPrograms lists the programs of the working directory. It marks programs in use as used, so that other workers
// of the directory keep them.
func (r *run) listPrograms() {
	all, err := fetch.Programs(r.Dir)
	r.fail(err)
	for _, p := range all {
		if r.inUse(filepath.Join(r.Dir, p.Name)) {
			fetch.Touch(r.Dir, p.Name)
			p.LastUse = r.now
		}
		r.programs = append(r.programs, p)
	}
}

// expire removes rounds and programs that are older than Keep.
func (r *run) expire(ctx context.Context) {
	cutoff := r.cutoff()
	r.rounds = slices.DeleteFunc(r.rounds, func(o *round) bool {
		return o.newest.Before(cutoff) && r.removeRound(ctx, o)
	})
	r.programs = slices.DeleteFunc(r.programs, func(p fetch.Installed) bool {
		return p.LastUse.Before(cutoff) && r.removeProgram(ctx, p, cutoff)
	})
}

// An item is a program, or the files of a round.
type item struct {
	at     time.Time
	bytes  int64
	remove func() bool
}

// shrink removes the oldest items, one by one, while all items together have more than MaxBytes.
func (r *run) shrink(ctx context.Context) {
	latest := r.now.Add(-Young)
	var total int64
	var items []item
	for _, o := range r.rounds {
		total += o.bytes
		items = append(items, item{o.newest, o.bytes, func() bool { return r.removeRound(ctx, o) }})
	}
	for _, p := range r.programs {
		total += p.Bytes
		items = append(items, item{p.LastUse, p.Bytes, func() bool { return r.removeProgram(ctx, p, latest) }})
	}
	if total <= r.MaxBytes {
		return
	}
	items = slices.DeleteFunc(items, func(i item) bool { return i.at.After(latest) })
	slices.SortFunc(items, func(a, b item) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(b.bytes, a.bytes)) })
	for _, i := range items {
		if total <= r.MaxBytes {
			return
		}
		if i.remove() {
			total -= i.bytes
		}
	}
	if total > r.MaxBytes {
		r.Log.Info("recent files and files in use exceed max_files_bytes", "bytes", total, "max_files_bytes",
			r.MaxBytes)
	}
}

// removeRound removes the files of a round, unless one of them is in use.
func (r *run) removeRound(ctx context.Context, o *round) bool {
	if ctx.Err() != nil || slices.ContainsFunc(o.files, func(f file) bool { return r.inUse(f.path()) }) {
		return false
	}
	all := true
	for _, f := range o.files {
		removed, bytes, err := r.remover.remove(f)
		r.fail(err)
		if removed && err == nil {
			r.removed.Files++
			r.removed.Bytes += bytes
			r.Log.Debug("removed the files of a round", "path", f.path())
		}
		all = all && (removed && err == nil || errors.Is(err, fs.ErrNotExist))
	}
	return all
}

func (r *run) removeProgram(ctx context.Context, p fetch.Installed, olderThan time.Time) bool {
	if ctx.Err() != nil || r.inUse(filepath.Join(r.Dir, p.Name)) {
		return false
	}
	removed, bytes, err := fetch.Remove(ctx, r.Dir, p.Name, olderThan)
	r.fail(err)
	if removed {
		r.removed.Programs++
		r.removed.Bytes += bytes
		r.Log.Info("removed an unused program", "program", p.Name, "used", p.LastUse, "bytes", bytes)
	}
	return removed
}
