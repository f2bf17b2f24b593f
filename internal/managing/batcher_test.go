package managing

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/tdf-framework/tdf/internal/expect"
)

// A road records the calls of a Batcher, and makes each of them wait until the test lets it go.
type road struct {
	mu    sync.Mutex
	calls [][]int
	open  chan struct{}
}

var errRefused = errors.New("refused")

// newBatcher returns a Batcher that doubles numbers. A call with a negative number fails after it has answered the numbers before.
// At most three numbers travel in one call.
func newBatcher() (*road, *Batcher[int, int]) {
	r := &road{open: make(chan struct{})}
	return r, &Batcher[int, int]{
		Send: func(ctx context.Context, items []int) (results []int, err error) {
			r.mu.Lock()
			r.calls = append(r.calls, slices.Clone(items))
			r.mu.Unlock()
			select {
			case <-r.open:
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
			for _, n := range items {
				if n < 0 {
					return results, errRefused
				}
				results = append(results, 2*n)
			}
			return results, nil
		},
		Fits: func(items []int) bool { return len(items) <= 3 },
	}
}

type answered struct {
	results []int
	err     error
}

// carry calls Do in a goroutine, and waits until the call can get no further.
func carry(ctx context.Context, c *Batcher[int, int], items ...int) chan answered {
	got := make(chan answered, 1)
	go func() {
		results, err := c.Do(ctx, items)
		got <- answered{results, err}
	}()
	synctest.Wait()
	return got
}

func (r *road) letGo() {
	r.open <- struct{}{}
	synctest.Wait()
}

func check(t *testing.T, got chan answered, err error, want ...int) {
	t.Helper()
	select {
	case a := <-got:
		expect.Equal(t, a.results, want)
		expect.FailsWith(t, a.err, err)
	default:
		t.Errorf("no answer yet, want %v", want)
	}
}

func (r *road) check(t *testing.T, want ...[]int) {
	t.Helper()
	expect.True(t, slices.EqualFunc(r.calls, want, slices.Equal), "calls", r.calls, "want", want)
}

func TestCallersShareTheNextCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, c := newBatcher()
		a, b, d, e := carry(t.Context(), c, 1, 2), carry(t.Context(), c, 3), carry(t.Context(), c, 4, 5), carry(t.Context(), c, 6)
		r.check(t, []int{1, 2}, []int{3, 4, 5}) // the second call waited until it had as many items as the first
		r.letGo()
		check(t, a, nil, 2, 4)
		r.letGo()
		check(t, b, nil, 6)
		check(t, d, nil, 8, 10)
		r.letGo()
		check(t, e, nil, 12)
		alone := carry(t.Context(), c, 7)
		r.letGo()
		check(t, alone, nil, 14)
		r.check(t, []int{1, 2}, []int{3, 4, 5}, []int{6}, []int{7})
	})
}

// At most two calls are under way, and a call that ends makes room for one with all the waiting items.
func TestTwoCallsAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, c := newBatcher()
		first, second := carry(t.Context(), c, 1), carry(t.Context(), c, 2)
		third, fourth := carry(t.Context(), c, 3), carry(t.Context(), c, 4)
		r.check(t, []int{1}, []int{2})
		for range 3 {
			r.letGo()
		}
		for i, got := range []chan answered{first, second, third, fourth} {
			check(t, got, nil, 2*(i+1))
		}
		r.check(t, []int{1}, []int{2}, []int{3, 4})
	})
}

func TestARefusalReachesOnlyItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, c := newBatcher()
		first, good, bad, late := carry(t.Context(), c, 1, 1, 1, 1), carry(t.Context(), c, 2), carry(t.Context(), c, -1), carry(t.Context(), c, 3)
		for range 4 {
			r.letGo()
		}
		check(t, first, nil, 2, 2, 2, 2)
		check(t, good, nil, 4)
		check(t, bad, errRefused)
		check(t, late, nil, 6)
		r.check(t, []int{1, 1, 1, 1}, []int{2, -1, 3}, []int{-1}, []int{3}) // 2 was answered, and is not sent twice
	})
}

func TestPartOfTheAnswersIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, c := newBatcher()
		first, both, other := carry(t.Context(), c, 1, 1, 1, 1), carry(t.Context(), c, 2, -1), carry(t.Context(), c, 3)
		for range 4 {
			r.letGo()
		}
		check(t, first, nil, 2, 2, 2, 2)
		check(t, both, errRefused, 4)
		check(t, other, nil, 6)
		r.check(t, []int{1, 1, 1, 1}, []int{2, -1, 3}, []int{-1}, []int{3})
	})
}

func TestCallersThatGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, c := newBatcher()
		ctx, end := context.WithCancel(t.Context())
		first, gone, stays := carry(t.Context(), c, 1, 1, 1, 1, 1), carry(ctx, c, 2), carry(t.Context(), c, 3, 3, 3)
		end()
		synctest.Wait()
		check(t, gone, context.Canceled)
		expect.Len(t, c.waiting, 1)
		expect.Equal(t, c.waits, 3)
		r.letGo()
		check(t, first, nil, 2, 2, 2, 2, 2)
		ctx, end = context.WithCancel(t.Context())
		leaves, also := carry(ctx, c, 4), carry(t.Context(), c, 5)
		r.letGo()
		check(t, stays, nil, 6, 6, 6)
		end() // during the call of 4 and 5
		synctest.Wait()
		check(t, leaves, context.Canceled)
		r.letGo()
		check(t, also, nil, 10)
		r.check(t, []int{1, 1, 1, 1, 1}, []int{3, 3, 3}, []int{4, 5})
	})
}

func TestACallWithoutCallersEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, c := newBatcher()
		ctx, end := context.WithCancel(t.Context())
		first, a, b := carry(t.Context(), c, 1, 1, 1), carry(ctx, c, 2), carry(ctx, c, 3)
		r.letGo()
		check(t, first, nil, 2, 2, 2)
		end()
		synctest.Wait()
		check(t, a, context.Canceled)
		check(t, b, context.Canceled)
		next := carry(t.Context(), c, 4)
		r.letGo()
		check(t, next, nil, 8)
	})
}

// A call takes as many of the waiting callers as fit, in their order.
func TestFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, c := newBatcher()
		c.Fits = func(items []int) bool { return len(items) <= 20 }
		first := carry(t.Context(), c, 1)
		second := carry(t.Context(), c, 2)
		var waiting []chan answered
		for i := range 30 {
			waiting = append(waiting, carry(t.Context(), c, make([]int, 1+i%3)...))
		}
		close(r.open)
		for i, x := range append(waiting, first, second) {
			got := <-x
			expect.NoError(t, got.err)
			expect.True(t, len(got.results) > 0, i)
		}
		sent, most := 0, 0
		for _, call := range r.calls {
			sent, most = sent+len(call), max(most, len(call))
		}
		expect.Equal(t, sent, 62)
		expect.Compare(t, most, ">", 17)
		expect.Compare(t, most, "<=", 20)
	})
}
