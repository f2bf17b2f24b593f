package tdf

import (
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

func TestOriginalFetches(t *testing.T) {
	for source, want := range map[string]bool{
		"rsync:/p/run.sh": true, "rsync:run.sh": true, "rsync:h:p.tar.bz2": true, "http://h/p.zip": true, "https://h/p.tar.gz": true,
		"redis:" + strings.Repeat("0", 64): false, "rsync:/p.tar.zst": false, "rsync:/p.tgz": false, "rsync:/p.tar.xz": false, "": false,
		"rsync:/p.tar#sha256=" + strings.Repeat("0", 64): false, "rsync:/my-run.sh": false,
	} {
		expect.Equal(t, OriginalFetches(source), want, source)
		d := Defaults("p", source, "")
		apart := d
		apart.Apart = true
		if source != "" && (d.Place() != "" || (apart.Place() == DefaultPartition) == want) {
			t.Errorf("%s: the places are %q and %q", source, d.Place(), apart.Place())
		}
	}
}

// The original TDF accepts these values.
func TestTimesAsTheOriginalReadsThem(t *testing.T) {
	h := Hash{"program": "p", "source": "rsync:/p/run.sh", "start_after": "-1", "end_before": "1e18", "timeout": " 5 "}
	task, err := ParseTask(1, h)
	if err != nil || task.StartAfter != 0 || task.EndBefore != Never || task.Timeout != 5 {
		t.Errorf("got %v, %v, %v, %v", task.StartAfter, task.EndBefore, task.Timeout, err)
	}
}
