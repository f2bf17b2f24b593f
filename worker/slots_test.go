package worker

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tdf-framework/tdf/config"
)

// A slotsModel makes claims and reports in any order, as concurrent goroutines do. Each element of the field steps
// contains the remaining steps of one claim or report that is under way.
type slotsModel struct {
	*supervisor
	t       *rapid.T
	running []*execution
	steps   [][]func()
}

// started starts a random number of tasks, at most the given number, as if a claim had returned these tasks.
func (m *slotsModel) started(most int) {
	for range rapid.IntRange(0, most).Draw(m.t, "claimed") {
		m.busy++
		e := &execution{s: m.supervisor, slot: m.takeSlot()}
		m.running = append(m.running, e)
		if e.slot > m.slots() {
			m.t.Fatalf("slot %d is busy, and there are %d", e.slot, m.slots())
		}
	}
}

func (m *slotsModel) claim() {
	free, _ := m.reserve(nil)
	m.steps = append(m.steps, []func(){func() { m.started(free) }, func() { m.endReservation(free, 0, nil) }})
}

func (m *slotsModel) report() {
	n := rapid.IntRange(0, len(m.running)).Draw(m.t, "results")
	results := slices.Clone(m.running[:n])
	m.running = slices.Clone(m.running[n:])
	for _, d := range results {
		if d.passedOn = rapid.IntRange(0, 2).Draw(m.t, "passed on") == 0; d.passedOn { // to a prefetched task
			m.running = append(m.running, &execution{s: m.supervisor, slot: d.slot})
		}
	}
	most, _ := m.reserve(results)
	var steps []func()
	var refused []*execution
	for _, d := range results {
		if !d.passedOn && rapid.IntRange(0, 9).Draw(m.t, "refused") == 0 {
			refused = append(refused, d)
		} else if !d.passedOn {
			steps = append(steps, func() { m.freeSlot(d) })
		}
	}
	// The slot of a refused result is not free. If a task was claimed for this slot, the worker releases the task.
	m.steps = append(m.steps, append(steps, func() { m.started(max(0, most-len(refused))) }, func() {
		m.endReservation(most, 0, results)
		m.running = append(m.running, refused...)
	}))
}

// Claims and reports that are under way at the same time never reserve a slot twice.
func TestSlotsAreReservedOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &slotsModel{t: t, supervisor: newSupervisor(&Worker{cfg: config.Worker{Concurrency: rapid.IntRange(1, 6).Draw(t, "slots")}})}
		m.once.Store(true) // it prefetches nothing
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			switch k := rapid.IntRange(0, len(m.steps)+1).Draw(t, "step"); k {
			case 0:
				m.claim()
			case 1:
				m.report()
			default:
				next := m.steps[k-2]
				if next[0](); len(next) > 1 {
					m.steps[k-2] = next[1:]
				} else {
					m.steps = slices.Delete(m.steps, k-2, k-1)
				}
			}
		}
		for len(m.steps) > 0 {
			for _, step := range m.steps[0] {
				step()
			}
			m.steps = m.steps[1:]
		}
		if m.reserved != 0 || m.busy != len(m.running) {
			t.Errorf("at the end, %d reserved, %d busy with %d rounds", m.reserved, m.busy, len(m.running))
		}
	})
}
