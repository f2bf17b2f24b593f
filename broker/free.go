package broker

import (
	"sync"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

// freeResources are what a worker has had free after its last claim. Meanwhile, rounds may have ended; the worker then
// claims again. An idle worker takes only wake tokens of tasks that fit, because a token wakes one worker.
type freeResources struct {
	mu   sync.Mutex
	left tdf.Capacities // nil if the worker offers no resources
}

func (f *freeResources) get() tdf.Capacities {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.left
}

func (f *freeResources) set(free tdf.Capacities) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left = free
}

// take takes what claimed tasks need.
func (f *freeResources) take(claims []redisstate.Claim) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range claims {
		if f.left == nil {
			return
		}
		left, alternative := f.left.Without(claims[i].Task.Request())
		if alternative >= 0 {
			f.left = left
		}
	}
}
