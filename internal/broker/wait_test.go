package broker

import (
	"strconv"
	"testing"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/testspace"
)

// However many offers one token's workers have, the workers of another token are woken as soon as they have a task.
func TestShareOfWakers(t *testing.T) {
	d := New(testspace.Connect(t, testspace.Config(t, redistest.Shared(t))), Options{})
	take := func(token string, n int) (woken int) {
		for i := range n {
			w, giveBack := d.takeWaker(d.waitlist(token, class.Offer{Queues: []class.QueueShare{{Queue: "q" + strconv.Itoa(i)}}}, nil))
			t.Cleanup(giveBack)
			if w != nil {
				woken++
			}
		}
		return woken
	}
	expect.Equal(t, take("greedy", 400), mostWakers/2)
	expect.Equal(t, take("other", 33), mostWakers/4)
	expect.True(t, d.waitlist("greedy", class.Offer{}, nil) != d.waitlist("other", class.Offer{}, nil), "two tokens share a waitlist")
}
