package rounddir

import (
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// Files in memory are read like those on disk. When they move into a directory, nothing is reported twice or left out.
func TestFilesInMemory(t *testing.T) {
	d := InMemory(Before{Checkpoint: []byte("old")}, limits, secret(t, "hunter22"))
	d.news(t, Report{})
	must(t, d.Replace(CheckpointFile, []byte("old")))
	d.news(t, Report{})
	state := []byte("new")
	must(t, d.Replace(CheckpointFile, state))
	state[0] = 'x' // the caller may use its bytes again
	must(t, d.Replace(ProgressFile, []byte("0.5 hunter22\n")))
	must(t, d.Replace(ResultFile, []byte(`{"a": 1}`)))
	must(t, d.Append(UpdatesFile, "first\n"))
	report := d.news(t, Report{Progress: "0.5 ***", HasProgress: true, Checkpoint: []byte("new"), Updates: []string{"first"}})
	must(t, d.Append(UpdatesFile, "second"))

	disk := create(t, Before{}, limits, secret(t, "hunter22"))
	must(t, d.MoveTo(disk))
	disk.Accepted(report) // its answer came after the move
	must(t, disk.Append(UpdatesFile, "third"))
	disk.Accepted(disk.news(t, Report{Updates: []string{"second", "third"}, FirstUpdate: 2}))
	disk.news(t, Report{FirstUpdate: 4})
	text, err := disk.Result()
	expect.NoError(t, err)
	expect.Equal(t, text, `{"a": 1}`)
	must(t, disk.Replace(ResultFile, []byte("2")))
	text, err = disk.Result()
	expect.NoError(t, err)
	expect.Equal(t, text, "2")
}

// Memory holds no more than the limits allow, and the limits have the same effects as on disk.
func TestLimitsInMemory(t *testing.T) {
	d := InMemory(Before{}, Limits{Checkpoint: 100, Result: 100, Updates: 10_000}, nil)
	must(t, d.Replace(CheckpointFile, make([]byte, 1<<20)))
	must(t, d.Replace(ResultFile, make([]byte, 1<<20)))
	must(t, d.Replace(ProgressFile, make([]byte, 1<<20)))
	for range 10_000 {
		must(t, d.Append(UpdatesFile, strings.Repeat("x", 99)))
	}
	var bytes int
	for _, f := range d.held {
		bytes += len(f.data)
	}
	expect.True(t, bytes < 20_000, bytes)
	r := d.News(true)
	expect.Len(t, r.Updates, 101)
	expect.Equal(t, r.Updates[100], "[updates end here: more than 10000 bytes]")
	expect.Contains(t, strings.Join(r.Problems, "\n"), "checkpoint: 1048576 bytes, more than 100; the previous checkpoint stays")
	_, err := d.Result()
	expect.Fails(t, err, "result.json: 1048576 bytes, more than 100")
}
