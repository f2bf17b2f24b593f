package redisstate_test

import (
	"context"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/redisstate"
)

// ever is a time-out for Wait that is longer than any test. So if Wait returns, it has got a token.
const ever = time.Hour

func TestWake(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		w := s.WakeWorker(nil, nil)
		defer w.Close()
		woken := make(chan bool)
		go func() { woken <- w.Wait(t.Context(), ever) }()
		mustOpen(t, s, define("x"))
		expect.True(t, <-woken, "opening a task woke no waker")
		expect.True(t, !w.Wait(t.Context(), 0), "woken without a token")
		expect.True(t, !w.Wait(t.Context(), time.Millisecond), "woken without a token")
		ctx, stop := context.WithCancel(t.Context())
		go func() { woken <- w.Wait(ctx, ever) }()
		stop()
		expect.True(t, !<-woken, "the end of the context counted as work")
	})
}

// If a token arrives after Wait has returned, the Waker puts it back, so that another Waker gets it.
func TestUnusedTokensGoBack(t *testing.T) {
	s := newStore(t)
	busy := s.WakeWorker(nil, nil)
	defer busy.Close()
	if busy.Wait(t.Context(), time.Millisecond) { // after Wait has returned, its BLPOP still runs for a while
		t.Fatal("woken without a token")
	}
	mustOpen(t, s, define("x"))
	idle := s.WakeWorker(nil, nil)
	defer idle.Close()
	expect.True(t, idle.Wait(t.Context(), ever), "the Waker whose Wait has returned kept the token")
}

// A component that got a token waits for no other one until it calls Wait again, so that its next command comes first, and other
// components get the next token.
func TestATokenEndsTheWait(t *testing.T) {
	s := connect(t, redistest.Start(t).Addr, redistest.Namespace(t)) // it counts the commands of this Redis
	w := s.WakeWorker(nil, nil)
	defer w.Close()
	for calls := 1; calls <= 3; calls++ {
		mustOpen(t, s, define("x"))
		expect.True(t, w.Wait(t.Context(), ever), "opening a task woke no waker")
		mustClaim(t, s, 1)
		expect.Equal(t, commandCalls(t, s, "blpop"), calls, "calls of BLPOP")
	}
}

// If the reply that contains a token is lost, the waiting component is still woken.
func TestALostTokenWakes(t *testing.T) {
	t.Parallel()
	proxy := redistest.NewProxy(t, redistest.Shared(t))
	s := connect(t, proxy.Addr, redistest.Namespace(t))
	mustOpen(t, s, define("x"))
	proxy.DropReplies(1, func(command []string) bool { return command[0] == "BLPOP" })
	w := s.WakeWorker(nil, nil)
	defer w.Close()
	expect.True(t, w.Wait(t.Context(), ever), "not woken, or", proxy.Dropped(), "tokens were lost; want 1")
	expect.Equal(t, proxy.Dropped(), 1)
}

// If open tasks remain after a claim, the claim wakes the next worker. So enough workers wake up for all tasks.
func TestClaimWakesTheNextWorker(t *testing.T) {
	s := newStore(t)
	const workers = 12 // more workers than the largest number of tokens
	woken := make(chan bool)
	for range workers {
		w := s.WakeWorker(nil, nil)
		defer w.Close()
		go func() {
			ok := w.Wait(t.Context(), ever)
			s.Claim(t.Context(), redisstate.ClaimParams{Worker: "w", Most: 1, Lease: 60})
			woken <- ok
		}()
	}
	for range workers {
		mustOpen(t, s, define("x"))
	}
	for range workers {
		expect.True(t, <-woken, "not woken")
	}
}

// If a woken worker does not want the open tasks, its claim still wakes the next worker.
func TestAClaimOfNothingWakesTheNextWorker(t *testing.T) {
	s := newStore(t)
	first, second := s.WakeWorker(nil, nil), s.WakeWorker(nil, nil)
	defer first.Close()
	defer second.Close()
	putOff(t, s, "w", mustOpen(t, s, define("x"))...)
	expect.True(t, first.Wait(t.Context(), ever), "not woken")
	c := expect.Result(s.Claim(t.Context(), redisstate.ClaimParams{Worker: "w", Most: 1, Lease: 60})).Value(t)
	expect.Len(t, c.Claims, 0)
	expect.Equal(t, c.Unwanted, 1)
	expect.True(t, second.Wait(t.Context(), ever), "not woken")
}

func TestWaitOnAClosedWaker(t *testing.T) {
	s := newStore(t)
	w := s.WakeServer()
	defer w.Close() // ends the goroutine that Wait may have started
	must(t, w.Close())
	expect.True(t, !w.Wait(t.Context(), time.Millisecond), "woken by a closed connection")
}

// A claim puts no token for plain tasks into Redis if its worker does not serve their queue.
func TestOtherQueuesWakeNoPlainWorker(t *testing.T) {
	s := newStore(t)
	mustOpen(t, s, define("plain"), placed("a", 0), placed("a", 0))
	must(t, s.Conn.Redis.Del(t.Context(), s.Keys.WakeOpen()).Err())
	expect.Len(t, claimFor(t, s, 1, offerOf("a")).Claims, 1)
	expect.Equal(t, s.Conn.Redis.Exists(t.Context(), s.Keys.WakeOpen()).Val(), 0)
}
