package rounddir

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/expect"
)

func TestCheckpoint(t *testing.T) {
	d := create(t, Before{Checkpoint: []byte("before")}, limits, secret(t, "hunter22"))
	d.news(t, Report{})
	d.replace(t, "checkpoint", "a\x00hunter22") // checkpoints are not masked, because the program gets them back
	want := Report{Checkpoint: []byte("a\x00hunter22")}
	d.news(t, want)
	d.Accepted(d.news(t, want))
	d.news(t, Report{})
	d.replace(t, "checkpoint", "a\x00hunter22") // a new file with the same content
	d.Accepted(d.news(t, Report{}))
	d.write(t, "checkpoint", "in place")
	d.Accepted(d.news(t, Report{Checkpoint: []byte("in place")}))
	must(t, os.Remove(d.in("checkpoint")))
	d.Accepted(d.news(t, Report{}))
	d.write(t, "checkpoint", "")
	d.Accepted(d.news(t, Report{Checkpoint: []byte{}}))
	d.news(t, Report{})
}

// If a file changes twice within a tick of the file system's clock, its stamp stays the same. The second change is
// still reported.
func TestCheckpointThatChangesAtOnce(t *testing.T) {
	d := plain(t)
	for i := range 200 {
		text := fmt.Sprintf("%03d", i)
		d.write(t, "checkpoint", text)
		d.Accepted(d.news(t, Report{Checkpoint: []byte(text)}))
	}
}

// If a checkpoint has not changed for a while, it is read only once.
func TestCheckpointIsReadOnce(t *testing.T) {
	d := plain(t)
	d.write(t, "checkpoint", "x")
	d.Accepted(d.News(false))
	for end := time.Now().Add(30 * time.Second); d.seen.stamp.young; {
		d.Accepted(d.news(t, Report{}))
		expect.MustTrue(t, !time.Now().After(end), "the stamp still counts as young after 30 s")
	}
	d.seen.checkpoint = digest{} // with this digest, a second reading would report the checkpoint
	d.news(t, Report{})
}

func TestCheckpointTooLarge(t *testing.T) {
	d := create(t, Before{Checkpoint: []byte("before")}, limits, nil)
	d.replace(t, "checkpoint", strings.Repeat("x", 101))
	d.Accepted(d.news(t, Report{Problems: []string{"checkpoint: 101 bytes, more than max_checkpoint (100); the previous checkpoint stays"}}))
	must(t, os.Truncate(d.in("checkpoint"), 1<<40))
	d.Accepted(d.news(t, Report{}))
	d.replace(t, "checkpoint", strings.Repeat("x", 100))
	d.news(t, Report{Checkpoint: []byte(strings.Repeat("x", 100))})
}
