package manager_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/manager"
)

// threeStages returns a pipeline that opens many tasks, then the same number of tasks, and then one.
func threeStages(m *manager.Manager, many int) *manager.Pipeline {
	p := m.Pipeline("p")
	p.Start("a", func(_ context.Context, a *manager.Stage) error {
		for i := range many {
			a.Open(define("p", source, strconv.Itoa(i)))
		}
		return nil
	})
	p.Each("a", func(_ context.Context, t *manager.Finished) error {
		if t.Input == "7" {
			d := define("p", source, "follow-up")
			d.Group = "p/c"
			t.Open(d)
		}
		return nil
	})
	p.After("a", "b", func(ctx context.Context, b *manager.Stage) error {
		for t, err := range p.Tasks(ctx, "a") {
			if err != nil {
				return err
			}
			b.Open(define("p", source, "b"+t.Output()))
		}
		return nil
	})
	p.After("b", "c", func(ctx context.Context, c *manager.Stage) error {
		n := 0
		for _, err := range p.Tasks(ctx, "b") {
			if err != nil {
				return err
			}
			n++
		}
		c.Open(define("p", source, fmt.Sprint("b has ", n)))
		return nil
	})
	p.After("c", "", nothing)
	return p
}

// checkThreeStages checks that each task was opened once, and archived.
func checkThreeStages(t *testing.T, m *manager.Manager, many int) {
	t.Helper()
	checkInOrder(t, m, "p/a", "", many)
	checkInOrder(t, m, "p/b", "b", many)
	var last []string
	for one, err := range m.List(t.Context(), manager.Query{Group: "p/c", Order: manager.ByID}) {
		must(t, err)
		last = append(last, one.Input)
	}
	want := fmt.Sprintf("[follow-up b has %d]", many)
	expect.True(t, fmt.Sprint(last) == want, "stage c", last, "want", want)
	counts := expect.Result(m.Counts(t.Context())).Value(t)
	expect.Equal(t, counts[tdf.Archived], counts.Total())
}

// A waiting pipeline wakes up when tasks finish. Otherwise, it would wait for its round_duration of an hour.
func TestPipelineIsWoken(t *testing.T) {
	t.Parallel()
	cfg := redisConfig(t, redistest.Shared(t))
	startServerAndWorker(t, cfg)
	cfg.RoundDuration = time.Hour
	m := newManager(t, cfg)
	must(t, threeStages(m, 300).Run(t.Context()))
	checkThreeStages(t, m, 300)
	registered := testspace.Client(t, cfg).ZCard(t.Context(), cfg.Namespace+":managers")
	expect.Equal(t, registered.Val(), 0, "registered managers")
}

// Two managers run the same pipeline. The test interrupts them after a random number of replies, and loses replies of Redis at random.
func TestPipelineOnABadLink(t *testing.T) {
	t.Parallel()
	const many, interruptions = 700, 10
	cfg := redisConfig(t, redistest.Shared(t))
	startServerAndWorker(t, cfg)
	stop := errors.New("stop")
	var both sync.WaitGroup
	for range 2 {
		proxy := redistest.NewProxy(t, redistest.Shared(t))
		far := cfg
		far.Redis = redisConfig(t, proxy.Addr).Redis
		proxy.DropReplies(100, func([]string) bool { return rand.IntN(20) == 0 })
		both.Go(func() {
			for range interruptions {
				ctx, cancel := context.WithCancelCause(t.Context())
				left := rand.IntN(150)
				proxy.Alter(func(reply []byte) []byte {
					if left--; left <= 0 {
						cancel(stop)
					}
					return reply
				})
				if err := threeStages(newManager(t, far), many).Run(ctx); err != nil && !errors.Is(err, stop) {
					t.Error(err)
				}
				cancel(nil)
			}
			err := threeStages(newManager(t, far), many).Run(t.Context())
			expect.True(t, err == nil, err)
			expect.True(t, proxy.Dropped() != 0, "no reply was lost")
		})
	}
	both.Wait()
	checkThreeStages(t, newManager(t, cfg), many)
}

// limited returns a manager on a Redis of its own, which has a maxmemory, and a function that changes the share of it above which
// new tasks wait.
func limited(t *testing.T) (cfg config.Manager, m *manager.Manager, log *logged, highWater func(value string)) {
	t.Helper()
	cfg, log = redisConfig(t, redistest.Start(t).Addr), &logged{}
	must(t, testspace.Client(t, cfg).ConfigSet(t.Context(), "maxmemory", "1gb").Err())
	m = newManager(t, cfg, log.option())
	return cfg, m, log, func(value string) {
		must(t, admin.New(m).ChangeSetting(t.Context(), task.SettingHighWater, value))
	}
}

// While new tasks wait for memory, callbacks run, and their tasks are archived. Otherwise, nothing could free the memory.
func TestStartWaitsForMemory(t *testing.T) {
	t.Parallel()
	cfg, m, log, highWater := limited(t)
	const many = 1500
	p := m.Pipeline("p")
	p.Start("small", opens("1"))
	handled := 0
	p.Each("small", func(context.Context, *manager.Finished) error {
		handled++
		highWater("0.8")
		return nil
	})
	p.Start("large", func(_ context.Context, s *manager.Stage) error {
		eventually(t, "the small task is open", func() bool {
			return expect.Result(m.Counts(t.Context(), "p/small")).Value(t)[tdf.Open] == 1
		})
		highWater("0.001")
		for i := range many {
			s.Open(define("p", source, strconv.Itoa(i)))
		}
		return nil
	})
	ended := make(chan error)
	go func() { ended <- p.Run(t.Context()) }()
	eventually(t, "the pipeline waits for memory", func() bool {
		return log.Count("new tasks wait, because redis uses too much of its maxmemory") > 0
	})
	startServerAndWorker(t, cfg)
	must(t, <-ended)
	expect.Equal(t, handled, 1)
	expect.Equal(t, log.Count("level=ERROR"), 0, handled)
	checkInOrder(t, m, "p/large", "", many)
}

// A function of After that opens more tasks than fit into one step waits for memory before its definitions are stored. If the
// memory ends later, the stage fails, and its stored definitions are removed.
func TestAfterWaitsForMemory(t *testing.T) {
	t.Parallel() // the test only waits
	const many = 2 * (manager.MaxStep + 100)
	for _, stored := range []int{0, manager.MaxStep + 500} {
		t.Run(fmt.Sprint("after ", stored, " definitions"), func(t *testing.T) {
			t.Parallel()
			cfg, m, log, highWater := limited(t)
			startServerAndWorker(t, cfg)
			p := m.Pipeline("p")
			p.Start("small", opens("1"))
			calls := 0
			p.After("small", "large", func(_ context.Context, s *manager.Stage) error {
				if calls++; calls > 1 {
					highWater("0.8")
				}
				for i := range many {
					if calls == 1 && i == stored {
						highWater("0.001")
					}
					s.Open(define("p", source, strconv.Itoa(i)))
				}
				return nil
			})
			must(t, p.Run(t.Context()))
			failures := log.Count("definitions fit, and then: ")
			expect.Compare(t, calls, ">=", 2, failures)
			expect.Equal(t, failures, min(stored, 1), calls)
			expect.Len(t, testspace.Client(t, cfg).Keys(t.Context(), cfg.Namespace+":definitions:*").Val(), 0)
			checkInOrder(t, m, "p/large", "", many)
		})
	}
}
