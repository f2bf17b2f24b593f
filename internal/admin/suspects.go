package admin

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/tdf-framework/tdf/internal/listing"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

// A Suspect is a worker on which a program fails far more often than on other workers. Most likely the worker has a
// defect.
type Suspect struct {
	Worker       string  `json:"worker"`
	Program      string  `json:"program"`
	Failed       int     `json:"failed"`        // failed rounds of the program on this worker
	Rounds       int     `json:"rounds"`        // all rounds of the program on this worker
	OthersFailed int     `json:"others_failed"` // failed rounds of the program on all other workers
	OthersRounds int     `json:"others_rounds"`
	P            float64 `json:"p"` // the probability that such a difference occurs by chance among equal workers
}

// The conditions that make a worker suspect. A worker may have many failed rounds by chance. suspectP limits the
// probability of this for all workers of the program together, so there are not more false suspects if there are more
// workers.
const (
	suspectFailures = 3     // the minimum number of failed rounds
	suspectRatio    = 2     // the minimum multiple of the failure rate of the other workers
	suspectP        = 0.001 // the maximum probability
)

// suspectSample limits how many tasks are read to find suspects.
var suspectSample = listing.Bounds{Time: 200 * time.Millisecond, Tasks: 2000, Bytes: 1 << 20}

// suspects returns the suspect workers. It compares workers by the finished tasks that the query selects, the latest
// tasks first.
func suspects(ctx context.Context, s store, q task.Query) ([]Suspect, error) {
	f, err := listing.New(ctx, s, task.Query{
		IDs: q.IDs, States: listing.Finished,
		Group: q.Group, Queue: q.Queue, Program: q.Program, Since: q.Since, Before: q.Before,
	}, "")
	if err != nil {
		return nil, err
	}
	f.Bounds = suspectSample
	f.Texts = func(*task.Task) []redisstate.TextsOf { return nil }
	scores := scoreboard{}
	err = f.Each(scores.add)
	return scores.suspects(), err
}

// A scoreboard counts rounds and failures by program and worker.
type scoreboard map[string]map[string]score

type score struct{ failed, rounds int }

// add counts the failed rounds of a task, and its successful round. It ignores rounds that were released and rounds
// that expired. It always returns true, so that the search continues.
func (b scoreboard) add(t *task.Task) bool {
	for i, r := range t.Rounds.All() {
		failed := 0
		switch listing.HowFailed(t, i) {
		case "":
			if i != t.Round || listing.Outcome(t) != string(task.Succeeded) {
				continue
			}
		case listing.HowNeverRan, listing.HowRanTooLong, listing.HowLate:
			continue
		default:
			failed = 1
		}
		b.count(t.Program, r.Worker, failed)
	}
	return true
}

func (b scoreboard) count(program, worker string, failed int) {
	if worker == "" {
		return
	}
	if b[program] == nil {
		b[program] = map[string]score{}
	}
	s := b[program][worker]
	b[program][worker] = score{s.failed + failed, s.rounds + 1}
}

func (b scoreboard) suspects() []Suspect {
	var all []Suspect
	for program, workers := range b {
		var sum score
		for _, s := range workers {
			sum = score{sum.failed + s.failed, sum.rounds + s.rounds}
		}
		for worker, s := range workers {
			others := score{sum.failed - s.failed, sum.rounds - s.rounds}
			p := s.chance(others) * float64(len(workers))
			if s.failed >= suspectFailures && s.ratio() >= suspectRatio*others.ratio() && p < suspectP {
				all = append(all, Suspect{worker, program, s.failed, s.rounds, others.failed, others.rounds, p})
			}
		}
	}
	slices.SortFunc(all, func(a, b Suspect) int {
		return cmp.Or(cmp.Compare(a.P, b.P), cmp.Compare(a.Worker, b.Worker), cmp.Compare(a.Program, b.Program))
	})
	return all
}

func (s score) ratio() float64 { return float64(s.failed) / max(1, float64(s.rounds)) }

// chance returns the probability of at least this number of failures in this number of rounds, if all failures hit
// rounds at random. This is Fisher's exact test, one-sided.
func (s score) chance(others score) float64 {
	rounds, failed := s.rounds+others.rounds, s.failed+others.failed
	p := 0.0
	for k := s.failed; k <= min(s.rounds, failed); k++ {
		if failed-k <= others.rounds {
			p += math.Exp(logChoose(s.rounds, k) + logChoose(others.rounds, failed-k) - logChoose(rounds, failed))
		}
	}
	return min(p, 1)
}

func logChoose(n, k int) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c
}
