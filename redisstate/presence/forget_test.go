package presence

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
)

// Each worker is remembered as long as it has asked for. The names of the others leave the list, and then the set of all names.
func TestForgottenWorkers(t *testing.T) {
	onEach(t, func(t *testing.T, s *Presence) {
		ctx := t.Context()
		now := expect.Result(s.Now(ctx)).Value(t)
		for name, remember := range map[string]tdf.Seconds{"usual": 0, "short": 100, "leases": 1, "drained": 100} {
			w := WorkerInfo{Name: name, Boot: name, Lease: 60, State: "working", Remember: remember}
			_, _, err := s.TakeName(ctx, w, PriorOwner{})
			expect.NoError(t, err)
			left := s.Redis.TTL(ctx, s.Keys.Worker(name)).Val()
			want := max(3*time.Minute, remember.Std())
			if remember == 0 {
				want = UsuallyRemembered.Std()
			}
			expect.Compare(t, left, "<=", want, name)
			expect.Compare(t, left, ">", want/2, name)
		}
		expect.Result(s.Drain(ctx, "drained", "me")).Is(t, true)
		var foreign []any
		for i := range 2 * namesForgotten {
			name := fmt.Sprint("gone", i)
			foreign = append(foreign, name)
			s.Redis.ZAdd(ctx, s.Keys.Workers(), redis.Z{Score: 1, Member: name})
		}
		s.Redis.SAdd(ctx, s.Keys.WorkerNames(), foreign...)
		s.Redis.Set(ctx, s.Keys.WorkerNumber("gone0"), 7, 0) // a worker of the original TDF
		s.Redis.Set(ctx, s.Keys.Worker("gone1"), "a string", 0)
		s.Redis.ZAdd(ctx, s.Keys.Workers(), redis.Z{Score: float64(now) - 190, Member: "leases"}, redis.Z{Score: float64(now) - 190, Member: "usual"}, redis.Z{Score: float64(now) - 190, Member: "drained"})
		s.Redis.Del(ctx, s.Keys.Worker("short"), s.Keys.WorkerNumber("short")) // they have expired
		from, calls := 0, 0
		expect.Eventually(t, "the unused names are gone", func() bool {
			var err error
			from, err = s.ForgetWorkers(ctx, from)
			expect.NoError(t, err)
			calls++
			return s.Redis.SCard(ctx, s.Keys.WorkerNames()).Val() == 5
		})
		for range 3 {
			from, _ = s.ForgetWorkers(ctx, from)
		}
		expect.Equal(t, fmt.Sprint(s.Redis.ZRange(ctx, s.Keys.Workers(), 0, -1).Val()), "[usual]", "listed after", calls, "calls")
		for _, name := range []string{"usual", "leases", "drained", "gone0", "gone1"} {
			expect.True(t, s.Redis.SIsMember(ctx, s.Keys.WorkerNames(), name).Val(), name, "is unknown")
		}
		expect.Result(s.Drain(ctx, "drained", "")).Is(t, true)
		expect.Compare(t, s.Redis.TTL(ctx, s.Keys.Worker("drained")).Val(), "<=", 3*time.Minute, "a worker that is no longer drained")
	})
}
