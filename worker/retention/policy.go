package retention

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"time"
)

// Young is the age below which nothing is removed for its size. For programs, whose last use is
// not known so exactly, it is [fetch.UsedFor].
const Young = 5 * time.Minute

// Forever is a Keep without end.
const Forever time.Duration = math.MaxInt64

// A Policy says what is to be kept of what rounds and fetches leave in a working directory.
type Policy struct {
	Dir           string        // the working directory
	OutputPattern string        // task_output_filename
	ErrorPattern  string        // task_error_filename
	Keep          time.Duration // what is older goes (keep_files), above zero; [Forever]: for ever
	MaxBytes      int64         // of output files and programs together (max_files_bytes); 0: no limit

	// InUse says whether something is in use now: it is asked about paths of output files and what
	// lies beside them, and of programs' directories, all absolute. What is in use stays. nil:
	// nothing is.
	InUse func(path string) bool

	Log *slog.Logger // nil: none
}

// Removed says what was removed.
type Removed struct {
	Files    int   // output files, and directories beside them
	Programs int   // that were fetched
	Bytes    int64 // of all these
}

// Apply removes what is older than Keep, and then the oldest while all of it exceeds MaxBytes. It
// goes on where something cannot be removed or read, and then returns the first error and the
// number of the others; what others remove meanwhile is none. [ErrShared] is wrapped where a
// configured file name has no $taskId, which is the same each time.
//
// Workers that share a working directory may all do this, at any time. Each does it once an hour
// at least: programs in use are marked so by it ([fetch.Touch]).
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
