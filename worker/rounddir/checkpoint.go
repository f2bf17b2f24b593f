package rounddir

import (
	"crypto/sha256"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// A stamp shows whether a file has changed. A young stamp may stay the same although the file changes. The clock of a
// file system ticks every few milliseconds, and a file can change twice within one tick.
type stamp struct {
	inode, size, modified, changed int64
	young                          bool
}

// tick is longer than one tick of any file system whose times have fractions of a second.
const tick = 100 * time.Millisecond

func stampOf(info *unix.Stat_t) stamp {
	changed := time.Unix(info.Ctim.Unix())
	return stamp{
		int64(info.Ino), info.Size, info.Mtim.Nano(), info.Ctim.Nano(),
		time.Since(changed) < tick,
	}
}

// A digest identifies the content of a checkpoint. The zero digest means that there is no checkpoint.
type digest [sha256.Size]byte

func sum(b []byte) digest {
	if len(b) == 0 {
		return digest{}
	}
	return sha256.Sum256(b)
}

func (d *Dir) readCheckpoint(r *Report) {
	f, info, err := d.open(checkpointFile)
	if err != nil {
		d.problem(r, checkpointFile, "", err)
	}
	if f == nil {
		return
	}
	defer f.Close()
	now := stampOf(info)
	if now == d.seen.stamp && !now.young {
		return
	}
	b, err := readWhole(f, info.Size, d.limits.Checkpoint, "max_checkpoint")
	if err != nil {
		d.problem(r, checkpointFile, "content", fmt.Errorf("%w; the previous checkpoint stays", err))
		return
	}
	r.to.stamp = now
	if r.to.checkpoint = sum(b); r.to.checkpoint != d.seen.checkpoint {
		r.Checkpoint = b
	}
}
