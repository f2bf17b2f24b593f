package bench

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/server"
)

// BenchmarkServerRound measures a server's round. Of the stored tasks, some are executed and thus due, and the others are
// open. With -short, it leaves out the measurements with 1,000,000 tasks.
func BenchmarkServerRound(b *testing.B) {
	for _, stored := range []int{1000, 100_000, 1_000_000} {
		if testing.Short() && stored > 100_000 {
			continue
		}
		b.Run(fmt.Sprintf("stored=%d", stored), func(b *testing.B) {
			c := newCaller(b, emptyRedis(b))
			if _, err := c.bringMany(b.Context(), stored, tdf.Open); err != nil {
				b.Fatal(err)
			}
			for _, due := range []int{0, 100, 10_000} {
				if due < stored {
					b.Run(fmt.Sprintf("due=%d", due), func(b *testing.B) { c.serverRound(b, due) })
				}
			}
		})
	}
}

func (c *caller) serverRound(b *testing.B, due int) {
	s := newServer(b, c)
	ctx := b.Context()
	if _, err := s.RunOnce(ctx); err != nil { // the first round takes longer
		b.Fatal(err)
	}
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		if err := c.executeOldest(ctx, due); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		done, err := s.RunOnce(ctx)
		if err != nil || done.Total() != due {
			b.Fatalf("the server settled %d of %d due tasks; error %v", done.Total(), due, err)
		}
	}
	if due > 0 {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*due), "ns/task")
	}
}

// executeOldest executes the n oldest open tasks, archives and removes the tasks that an earlier round has settled, and
// opens n new tasks. So the number of stored tasks stays the same.
func (c *caller) executeOldest(ctx context.Context, n int) error {
	const most = 1000
	for ; n > 0; n -= most {
		batch := min(n, most)
		succeeded, err := c.inState(ctx, tdf.Succeeded)
		if err != nil {
			return err
		}
		settled := int(min(succeeded, int64(batch)))
		if err := c.archive(ctx, settled); err != nil {
			return err
		}
		if err := c.remove(ctx, settled); err != nil {
			return err
		}
		if err := c.open(ctx, batch); err != nil {
			return err
		}
		claims, err := c.claim(ctx, batch)
		if err != nil {
			return err
		}
		if err := c.execute(ctx, claims); err != nil {
			return err
		}
	}
	return nil
}

func newServer(t testing.TB, c *caller) *server.Server {
	cfg, err := config.DefaultServer("bench")
	if err != nil {
		t.Fatal(err)
	}
	return server.New("server", cfg, c.store, slog.New(slog.DiscardHandler))
}

func TestServerRound(t *testing.T) {
	c := newCaller(t, emptyRedis(t))
	if _, err := c.bringMany(t.Context(), 100, tdf.Open); err != nil {
		t.Fatal(err)
	}
	s := newServer(t, c)
	for range 2 {
		if err := c.executeOldest(t.Context(), 10); err != nil {
			t.Fatal(err)
		}
		if done, err := s.RunOnce(t.Context()); err != nil || done.Total() != 10 {
			t.Fatalf("the server settled %v; error %v", done, err)
		}
	}
	if archived, err := c.inState(t.Context(), tdf.Archived); archived > 0 || err != nil {
		t.Errorf("%d archived tasks remain; error %v", archived, err)
	}
}
