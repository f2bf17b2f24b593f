package presence

import (
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/conntest"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
)

// A waiting manager is woken even if Redis still lists many crashed managers before and after it.
func TestAManagerIsWokenAmongCrashedOnes(t *testing.T) {
	s := of(conntest.New(t))
	now := expect.Result(s.Conn.Now(t.Context())).Value(t)
	for i := range 3 * mostManagers {
		until := now.Add(task.Seconds(10 * (i + 1)))
		s.Conn.Redis.ZAdd(t.Context(), s.Conn.Keys.Managers(), redis.Z{Score: float64(until), Member: "crashed" + strconv.Itoa(i)})
	}
	// The entries of half of the crashed managers expire later.
	expect.NoError(t, s.ManagerHeartbeat(t.Context(), now, 15*mostManagers))
	for range 4 {
		s.waiting.read = time.Time{}
		for _, boot := range s.ManagersToWake(t.Context()) {
			s.Conn.Redis.LPush(t.Context(), s.Conn.Keys.WakeManager(boot), "1")
		}
	}
	expect.NotEqual(t, s.Conn.Redis.LLen(t.Context(), s.Conn.Keys.WakeManager(s.Conn.Boot())).Val(), 0, "not woken")
}
