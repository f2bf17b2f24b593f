package pool

import (
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// No client gets more than half of what others have left, and all together get no more than there is. What they give back is free again.
func TestPool(t *testing.T) {
	p := New(9)
	expect.Equal(t, p.Take("a", 5), ErrShare)
	expect.NoError(t, p.Take("a", 4))
	expect.Equal(t, p.Take("a", 1), ErrShare)
	expect.Equal(t, p.Take("b", 3), ErrShare)
	expect.NoError(t, p.Take("b", 2))
	expect.NoError(t, p.Take("e", 1))
	expect.NoError(t, p.Take("f", 1))
	leave := expect.Result(p.Enter("c")).Value(t)
	expect.Result(p.Enter("d")).FailsWith(t, ErrFull)
	leave()
	leave()
	expect.Equal(t, p.Taken(), 8)
	p.Return("a", 4)
	p.Return("b", 2)
	p.Return("e", 1)
	p.Return("f", 1)
	expect.Equal(t, p.Taken(), 0)
	expect.Len(t, p.of, 0, "keys")
	expect.NoError(t, New(1).Take("a", 1), "one of one")
}
