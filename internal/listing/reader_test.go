package listing_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/listing"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate"
)

// A countedStore says when it reads tasks.
type countedStore struct {
	*redisstate.Store
	reads chan int
}

func (s countedStore) Read(ctx context.Context, ids []int64, want redisstate.Want) ([]redisstate.Stored, error) {
	s.reads <- len(ids)
	return s.Store.Read(ctx, ids, want)
}

// While the caller takes tasks, the next ones are read. A caller that needs one task causes no second read.
func TestTheNextTasksAreReadAhead(t *testing.T) {
	cfg := testspace.Config(t, testspace.Embedded(t))
	m := testspace.Manager(t, cfg)
	s := countedStore{testspace.Connect(t, cfg), make(chan int, 100)}
	const many = 700
	var defs []manager.Definition
	for i := range many {
		defs = append(defs, testspace.Define("p", "rsync:/p/run.sh", strconv.Itoa(i)))
	}
	expect.Result(m.Open(t.Context(), defs...)).OK(t)
	none := func(*task.Task) []redisstate.TextsOf { return nil }
	for _, each := range []func(context.Context, listing.Store, task.Query, func(*task.Task) []redisstate.TextsOf,
		func(*task.Task) bool) error{listing.Each, listing.ByID} {
		taken := 0
		expect.NoError(t, each(t.Context(), s, task.Query{}, none, func(*task.Task) bool {
			taken++
			return false
		}))
		expect.Equal(t, taken, 1)
		expect.Len(t, s.reads, 1, "reads for one task")
		<-s.reads
		taken = 0
		expect.NoError(t, each(t.Context(), s, task.Query{}, none, func(*task.Task) bool {
			if taken++; taken == 2 { // the next tasks are read before this one is taken
				<-s.reads
				expect.Equal(t, <-s.reads, 300)
			}
			return true
		}))
		expect.Equal(t, taken, many)
		for len(s.reads) > 0 {
			<-s.reads
		}
	}
}
