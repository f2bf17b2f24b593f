package presence

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
)

// A worker is remembered for a week, and for three leases. The names of the others leave the list, and then the set of all names.
func TestForgottenWorkers(t *testing.T) {
	onEach(t, func(t *testing.T, s *Presence) {
		ctx := t.Context()
		now := expect.Result(s.Conn.Now(ctx)).Value(t)
		for name, lease := range map[string]task.Seconds{"usual": 60, "short": 60, "leases": week, "drained": 60} {
			w := WorkerInfo{Name: name, Boot: name, Lease: lease, State: "working"}
			_, _, err := s.TakeName(ctx, w, PriorOwner{})
			expect.NoError(t, err)
			left := s.Conn.Redis.TTL(ctx, s.Conn.Keys.Worker(name)).Val()
			want := max(UsuallyRemembered, 3*lease).Std()
			expect.Compare(t, left, "<=", want, name)
			expect.Compare(t, left, ">", want/2, name)
		}
		expect.Result(s.Drain(ctx, "drained", "me")).Is(t, true)
		var foreign []any
		for i := range 2 * namesForgotten {
			name := fmt.Sprint("gone", i)
			foreign = append(foreign, name)
			s.Conn.Redis.ZAdd(ctx, s.Conn.Keys.Workers(), redis.Z{Score: 1, Member: name})
		}
		s.Conn.Redis.SAdd(ctx, s.Conn.Keys.WorkerNames(), foreign...)
		s.Conn.Redis.Set(ctx, s.Conn.Keys.WorkerNumber("gone0"), 7, 0) // a worker of the original TDF
		s.Conn.Redis.Set(ctx, s.Conn.Keys.Worker("gone1"), "a string", 0)
		s.Conn.Redis.ZAdd(ctx, s.Conn.Keys.Workers(), redis.Z{Score: float64(now.Add(-2 * week)), Member: "leases"}, redis.Z{Score: float64(now.Add(-2 * week)), Member: "usual"}, redis.Z{Score: float64(now.Add(-2 * week)), Member: "drained"})
		s.Conn.Redis.Del(ctx, s.Conn.Keys.Worker("short"), s.Conn.Keys.WorkerNumber("short")) // they have expired
		from, calls := 0, 0
		expect.Eventually(t, "the unused names are gone", func() bool {
			var err error
			from, err = s.ForgetWorkers(ctx, from)
			expect.NoError(t, err)
			calls++
			return s.Conn.Redis.SCard(ctx, s.Conn.Keys.WorkerNames()).Val() == 5
		})
		for range 3 {
			from, _ = s.ForgetWorkers(ctx, from)
		}
		expect.Equal(t, fmt.Sprint(s.Conn.Redis.ZRange(ctx, s.Conn.Keys.Workers(), 0, -1).Val()), "[leases]", "listed after", calls, "calls")
		for _, name := range []string{"usual", "leases", "drained", "gone0", "gone1"} {
			expect.True(t, s.Conn.Redis.SIsMember(ctx, s.Conn.Keys.WorkerNames(), name).Val(), name, "is unknown")
		}
		expect.Result(s.Drain(ctx, "drained", "")).Is(t, true)
		expect.Compare(t, s.Conn.Redis.TTL(ctx, s.Conn.Keys.Worker("drained")).Val(), "<=", week.Std(), "a worker that is no longer drained")
	})
}
