package manager

import (
	"bytes"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
)

// outputOf returns the output of a progress. At the time of each step, the progress shows the summary of the step.
func outputOf(width int, steps []step) string {
	var out bytes.Buffer
	clock := time.Unix(1_000_000, 0)
	p := newProgress(&out)
	p.width, p.now = width, func() time.Time { return clock }
	for _, s := range steps {
		clock = time.Unix(1_000_000, 0).Add(time.Duration(s.at * float64(time.Second)))
		p.show(Summary{Counts: s.counts})
	}
	p.end()
	return out.String()
}

type step struct {
	at     float64
	counts tdf.Counts
}

func TestProgress(t *testing.T) {
	t.Parallel()
	begin := tdf.Counts{tdf.Open: 4}
	half := tdf.Counts{tdf.Open: 1, tdf.Running: 1, tdf.TimedOut: 1, tdf.Archived: 1}
	end := tdf.Counts{tdf.Archived: 4}
	for name, c := range map[string]struct {
		width int
		steps []step
		want  string
	}{
		"nothing":       {0, nil, ""},
		"lines":         {0, []step{{0, begin}, {6, half}, {12, end}}, "0/4 done, 4 open\n2/4 done, 1 open, 1 running, 1 timed out, 1 archived (0.3/s)\n4/4 done, 4 archived (0.3/s)\n"},
		"no change":     {0, []step{{0, begin}, {6, begin}, {60, begin}}, "0/4 done, 4 open\n"},
		"too soon":      {0, []step{{0, begin}, {1, half}, {2, half}, {5, half}}, "0/4 done, 4 open\n2/4 done, 1 open, 1 running, 1 timed out, 1 archived (0.4/s)\n"},
		"late":          {0, []step{{0, begin}, {1, half}}, "0/4 done, 4 open\n2/4 done, 1 open, 1 running, 1 timed out, 1 archived\n"},
		"done at once":  {0, []step{{0, begin}, {1, end}}, "0/4 done, 4 open\n4/4 done, 4 archived (4.0/s)\n"},
		"terminal":      {80, []step{{0, begin}, {0.05, half}, {1, end}}, "\r\x1b[K0/4 done, 4 open\r\x1b[K4/4 done, 4 archived (4.0/s)\n"},
		"narrow":        {9, []step{{0, begin}}, "\r\x1b[K0/4 done\n"},
		"only the last": {0, []step{{0, begin}, {100, half}, {140, end}}, "0/4 done, 4 open\n2/4 done, 1 open, 1 running, 1 timed out, 1 archived (0.0/s)\n4/4 done, 4 archived (0.1/s)\n"},
	} {
		expect.Equal(t, outputOf(c.width, c.steps), c.want, name)
	}
}
