package chaos

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// A ledger decides which batches the managers open, and records their messages.
type ledger struct {
	mu        sync.Mutex
	send      map[int]func(batch) // the managers that run, by their numbers
	next      int                 // the number of the next task
	ahead     int                 // how many tasks may be unfinished
	open      bool                // whether new batches are opened
	under     map[int]int         // the managers that got batches without an answer, by First
	keys      map[int]string      // the keys of these batches
	repeat    []batch             // batches with a key whose outcome is unknown
	opened    []batch             // batches with a known outcome, and those without a key whose outcome is unknown
	unknown   int                 // batches whose outcome was unknown at least once
	forgotten map[int]bool        // those of them without a key, and lost batches, by First
	checked   int                 // how many elements of opened lost will not check again
	kept      int64               // the last task of them that exists; 0 without one
	callbacks map[int64][]callback
	done      map[string]bool // the inputs of these tasks, without those of forgotten batches
	faulty    []string        // messages that are none
}

func newLedger(ahead int) *ledger {
	return &ledger{
		send: map[int]func(batch){}, ahead: ahead, open: true, under: map[int]int{}, keys: map[int]string{},
		callbacks: map[int64][]callback{}, forgotten: map[int]bool{}, done: map[string]bool{},
	}
}

// read reads a message of a manager.
func (l *ledger) read(text []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var m message
	if err := json.Unmarshal(text, &m); err != nil {
		l.faulty = append(l.faulty, fmt.Sprintf("%s: %v", text, err))
		return
	}
	switch {
	case m.Callback != nil:
		l.callbacks[m.Callback.ID] = append(l.callbacks[m.Callback.ID], *m.Callback)
		if !l.forgotten[batchOf(m.Callback.Input)] {
			l.done[m.Callback.Input] = true
		}
	case m.Error != "":
		l.lose(m.Batch.First)
		return // the next try comes with the next message, or with poke
	default:
		l.opened = append(l.opened, *m.Batch)
		delete(l.under, m.Batch.First)
		delete(l.keys, m.Batch.First)
	}
	l.feed()
}

// lose records that the outcome of a batch is unknown.
func (l *ledger) lose(first int) {
	b := batch{First: first, Key: l.keys[first]}
	if b.Key != "" {
		l.repeat = append(l.repeat, b)
	} else {
		l.opened = append(l.opened, b)
		l.forget(first)
	}
	l.unknown++
	delete(l.under, first)
	delete(l.keys, first)
}

// forget leaves a batch out of the number of unfinished tasks.
func (l *ledger) forget(first int) {
	l.forgotten[first] = true
	maps.DeleteFunc(l.done, func(input string, _ bool) bool { return batchOf(input) == first })
}

// lost records which acknowledged batches a fault has lost. The function reports which of the given tasks exist. What
// exists now is on all replicas, and is not checked again, except for its last task: lost returns its id if it is gone.
func (l *ledger) lost(fault string, exist func(ids []int64) map[int64]bool) (gone int64) {
	l.mu.Lock()
	first, end := l.checked, len(l.opened)
	ids := []int64{max(l.kept, 1)}
	for _, b := range l.opened[first:end] {
		ids = append(ids, b.IDs...)
	}
	l.mu.Unlock() // the managers go on meanwhile
	found := exist(ids)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept > 0 && !found[l.kept] {
		return l.kept
	}
	l.checked = end
	for i := first; i < end; i++ {
		switch b := &l.opened[i]; {
		case len(b.IDs) == 0:
		case found[b.IDs[0]]:
			l.kept = b.IDs[0]
		default:
			b.Lost = fault
			l.forget(b.First)
		}
	}
	return 0
}

// feed sends batches to the managers, as long as fewer tasks are unfinished than allowed.
func (l *ledger) feed() {
	for len(l.send) > 0 {
		var b batch
		switch {
		case len(l.repeat) > 0:
			b, l.repeat = l.repeat[0], l.repeat[1:]
		case l.open && l.unfinished() < l.ahead:
			b.First = l.next
			l.next += len(kinds)
			if b.First/len(kinds)%4 < 2 {
				b.Key = fmt.Sprint("batch ", b.First)
			}
		default:
			return
		}
		numbers := slices.Sorted(maps.Keys(l.send)) // the managers take turns
		number := numbers[b.First/len(kinds)%len(numbers)]
		l.under[b.First] = number
		l.keys[b.First] = b.Key
		l.send[number](b)
	}
}

// unfinished returns about how many tasks are not finished, without those of forgotten batches.
func (l *ledger) unfinished() int { return (l.next/len(kinds)-len(l.forgotten))*perBatch - len(l.done) }

// poke sends batches if there are any to send.
func (l *ledger) poke() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.feed()
}

// finished returns the number of tasks with which a callback was called, and the number of the others.
func (l *ledger) finished() (finished, unfinished int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.callbacks), l.unfinished()
}

// begin adds a manager.
func (l *ledger) begin(number int, send func(batch)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.send[number] = send
	l.feed()
}

// end removes a manager that has ended.
func (l *ledger) end(number int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.send, number)
	for first, of := range l.under {
		if of == number {
			l.lose(first)
		}
	}
	l.feed()
}

// close ends the opening of new batches.
func (l *ledger) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = false
}

// settled reports whether no batch lacks an answer.
func (l *ledger) settled() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.under)+len(l.repeat) == 0
}
