package worker

import (
	"maps"
	"slices"
	"sync"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

// queues decides which tasks the worker claims, and in which order (docs/lifecycle.md, "Queues").
type queues struct {
	offer tdf.Offer

	mu    sync.Mutex
	turns tdf.Turns
}

// newOffer returns what the worker offers. A worker with handlers runs only tasks without a source.
func (w *Worker) newOffer() tdf.Offer {
	return tdf.Offer{
		Queues: w.cfg.Queues, Tags: w.cfg.Tags,
		Handlers: slices.Sorted(maps.Keys(w.handlers)), Programs: len(w.handlers) == 0, Anything: w.runner != nil,
		Group: w.cfg.Group,
	}
}

// inTurn returns the offer, with the queues in the order in which the next claim serves them.
func (q *queues) inTurn() *tdf.Offer {
	q.mu.Lock()
	defer q.mu.Unlock()
	o := q.offer
	o.Queues = q.turns.Order(o.Queues)
	return &o
}

// record counts the tasks that a claim took from each queue.
func (q *queues) record(c redisstate.Claimed) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.turns.Record(q.offer.Queues, c.Queues, c.Taken)
}
