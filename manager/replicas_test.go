package manager_test

import (
	"context"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate"
)

// A pair is a primary with one replica, and a configuration whose writes the replica must confirm.
type pair struct {
	cfg              config.Manager
	primary, replica *redistest.Server
}

func newPair(t *testing.T) *pair {
	p := &pair{primary: redistest.Start(t, redistest.Replicates), replica: redistest.Start(t)}
	p.cfg = redisConfig(t, p.primary.Addr)
	p.cfg.Redis.Replicas = config.Replicas{Wanted: 1, Timeout: 50 * time.Millisecond}
	p.replica.Follow(p.primary)
	return p
}

// Without its replica, a call that opens or changes tasks says that its outcome is unknown. It has happened once,
// however many callers share a call. If the same request is repeated when the replica is back, it is confirmed.
func TestUnconfirmedWrites(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	m, ctx := testspace.Manager(t, p.cfg), t.Context()
	first := expect.Result(m.Open(ctx, define("p", source, ""))).Value(t)[0]
	p.replica.Follow(nil)
	unknown := func(err error, what string) {
		t.Helper()
		expect.Equal(t, tdf.CodeOf(err), tdf.CodeUnknown, what)
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			_, err := m.Open(ctx, define("p", source, ""))
			unknown(err, "open")
		})
	}
	all.Wait()
	for range 2 {
		_, err := m.OpenOnce(ctx, "key", define("p", source, ""))
		unknown(err, "open once")
	}
	cancelled, err := m.Cancel(ctx, first.Ref())
	unknown(err, "cancel")
	expect.Len(t, cancelled.Skipped, 0)
	expect.Equal(t, expect.Result(m.Counts(ctx)).Value(t).String(), "open 21 expired 1")
	p.replica.Follow(p.primary)
	again := expect.Result(m.OpenOnce(ctx, "key", define("p", source, ""))).Value(t)
	expect.Equal(t, again[0].ID, int64(22))
	expect.Equal(t, expect.Result(m.Counts(ctx)).Value(t).Total(), 22)
	p.replica.Follow(nil)
	p.cfg.Redis.Replicas.Wanted = 0
	_, port, _ := net.SplitHostPort(p.replica.Addr)
	p.cfg.Redis.Port, _ = strconv.Atoi(port)
	expect.Result(testspace.Manager(t, p.cfg).Get(ctx, 22)).OK(t)
}

// A call may ask for replicas itself. It cannot ask for fewer than the configuration.
func TestReplicasOfACall(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	_, err := testspace.Manager(t, p.cfg).Open(manager.WithReplicas(t.Context(), 2), define("p", source, ""))
	expect.Fails(t, err, "1 of 2 replicas")
	p.cfg.Redis.Replicas.Wanted = 0
	m := testspace.Manager(t, p.cfg)
	expect.Result(m.Open(manager.WithReplicas(t.Context(), 1), define("p", source, ""))).OK(t)
	p.replica.Follow(nil)
	_, err = m.Open(manager.WithReplicas(t.Context(), 1), define("p", source, ""))
	expect.Equal(t, tdf.CodeOf(err), tdf.CodeUnknown)
	expect.Result(m.Open(t.Context(), define("p", source, ""))).OK(t)
}

// A worker and the callbacks of a manager wait until the replica is back, as after an outage.
func TestRepeatedUntilConfirmed(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	m, log := testspace.Manager(t, p.cfg), &logged{}
	worker := expect.Result(redisstate.Connect(t.Context(), p.cfg.Redis, p.cfg.Namespace, log.logger())).Value(t)
	t.Cleanup(func() { worker.Close() })
	d := define("p", source, "")
	d.Group = "g"
	expect.Result(m.Open(t.Context(), d)).OK(t)
	claim := expect.Result(worker.Claim(t.Context(), redisstate.ClaimParams{Worker: "w", Most: 1, Lease: 600})).Value(t).Claims[0]
	p.replica.Follow(nil)
	done := make(chan error)
	go func() {
		stored, err := worker.ReadOne(context.Background(), claim.Task.ID, redisstate.Want{Fields: redisstate.Whole})
		if err == nil {
			move, _ := stored.Task.Execute(claim.ID, tdf.Result{Exit: "0"})
			_, err = worker.Execute(context.Background(), "w", move)
		}
		done <- err
	}()
	expect.Eventually(t, "the worker waits", func() bool { return log.Count("too few replicas confirm") > 0 })
	p.replica.Follow(p.primary)
	expect.NoError(t, <-done)
	expect.Compare(t, worker.Unconfirmed(), ">", 0)
}
