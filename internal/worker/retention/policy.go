package retention

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"time"
)

// Young protects new files: when Apply makes room, it removes no file younger than Young. A program is protected for
// [fetch.UsedFor] after its last use.
const Young = 5 * time.Minute

// Forever is the value of Keep with which no file is ever too old.
const Forever time.Duration = math.MaxInt64

// A Policy says what to keep in a working directory.
type Policy struct {
	Dir      string        // the working directory
	Keep     time.Duration // files older than this are removed (keep_files); must be above zero
	MaxBytes int64         // bound for output files and programs together (max_files_bytes); 0 means no bound

	// InUse reports whether a path is in use, so that it must not be removed. The path is that of an output file, of a
	// directory beside it, or of a program. All paths are absolute. If InUse is nil, nothing is in use.
	InUse func(path string) bool

	Log *slog.Logger // nil means no log
}

// Removed counts the removed files.
type Removed struct {
	Files    int   // number of output files and of directories beside them
	Programs int   // number of fetched programs
	Bytes    int64 // size of all removed files and programs
}

// Apply removes files older than Keep. Then it removes the oldest files until the remaining files have at most MaxBytes
// together. It continues after an error, and at the end returns the first error, with the number of the other errors.
// It ignores files that other processes remove in the meantime.
//
// Workers that share a working directory may call Apply at any time. Each worker must call it at least once an hour,
// because Apply also marks programs as used ([fetch.Touch]).
func (p Policy) Apply(ctx context.Context) (Removed, error) {
	r := &run{Policy: p, now: time.Now()}
	if p.Keep <= 0 {
		return Removed{}, fmt.Errorf("files cannot be kept for %v", p.Keep)
	}
	var err error
	if r.Dir, err = filepath.Abs(p.Dir); err != nil {
		return Removed{}, err
	}
	if r.Log == nil {
		r.Log = slog.New(slog.DiscardHandler)
	}
	defer r.remover.close()
	r.listPrograms()
	r.find(ctx)
	r.expire(ctx)
	if p.MaxBytes > 0 {
		r.shrink(ctx)
	}
	if ctx.Err() != nil {
		r.first, r.others = context.Cause(ctx), 0
	}
	return r.removed, r.err()
}
