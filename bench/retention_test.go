package bench

import (
	"context"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/bench/redisserver"
	"github.com/tdf-framework/tdf/server"
)

// retentions are the retention periods that BenchmarkRetention measures. They are over at once.
var retentions = map[string]func(*tdf.Properties){
	"keep_outputs":  func(d *tdf.Properties) { d.KeepOutputs = 1e-6 },
	"keep_archived": func(d *tdf.Properties) { d.KeepArchived = 0 },
}

// BenchmarkRetention measures how much memory comes back when a server removes archived tasks, or only their outputs. Each
// task has printed 2,000 bytes.
func BenchmarkRetention(b *testing.B) {
	for name, tune := range retentions {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				m := measureRetention(b, 50_000, tune)
				b.ReportMetric(m.before/1e6, "MB-before")
				b.ReportMetric(m.peak/1e6, "MB-peak")
				b.ReportMetric(m.after/1e6, "MB-after")
			}
		})
	}
}

// A usage is the memory of Redis in bytes: before the first task, with all tasks, and after the server's removals.
type usage struct{ before, peak, after float64 }

func measureRetention(t testing.TB, n int, tune func(*tdf.Properties)) (m usage) {
	r, err := redisserver.Start(redisserver.Shipped...)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Stop()
	c := newCaller(t, r)
	c.output, c.tune = 2000, tune
	memory := func(to *float64) {
		if *to, err = r.Memory(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	memory(&m.before)
	if _, err := c.bringMany(t.Context(), n, tdf.Archived); err != nil {
		t.Fatal(err)
	}
	memory(&m.peak)
	if err := settleAll(t.Context(), newServer(t, c)); err != nil {
		t.Fatal(err)
	}
	memory(&m.after)
	return m
}

// settleAll makes rounds of a server until nothing is due.
func settleAll(ctx context.Context, s *server.Server) error {
	for {
		if done, err := s.RunOnce(ctx); err != nil || done.Total() == 0 {
			return err
		}
	}
}

func TestRetentionFreesMemory(t *testing.T) {
	for name, least := range map[string]float64{"keep_outputs": 0.5, "keep_archived": 0.9} {
		m := measureRetention(t, 2000, retentions[name])
		if freed := (m.peak - m.after) / (m.peak - m.before); freed < least || freed > 1.1 {
			t.Errorf("%s: %.0f %% of the memory came back: %+v", name, 100*freed, m)
		}
	}
}
