package listing_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/listing"
	"github.com/tdf-framework/tdf/internal/pool"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate"
)

// A page ends when it reaches any bound. The next page continues from there.
func TestPagesEndAtTheirBounds(t *testing.T) {
	cfg := testspace.Config(t, testspace.Embedded(t))
	m, s := testspace.Manager(t, cfg), testspace.Connect(t, cfg)
	const mostAtOnce = 300
	const many = 1200
	var defs []manager.Definition
	for i := range many {
		defs = append(defs, testspace.Define("p", "rsync:/p/run.sh", strconv.Itoa(10_000+i))) // 5 bytes each
	}
	expect.Result(m.Open(t.Context(), defs...)).OK(t)
	for name, c := range map[string]struct {
		bounds listing.Bounds
		looked int // how many tasks are read for the first page
	}{
		"tasks": {listing.Bounds{Time: time.Hour, Tasks: 600, Bytes: 1 << 20}, 2 * mostAtOnce},
		"bytes": {listing.Bounds{Time: time.Hour, Tasks: 1 << 20, Bytes: 5 * 700}, 700},
		"one":   {listing.Bounds{Time: time.Hour, Tasks: 1 << 20, Bytes: 1}, 1},
		"time":  {listing.Bounds{Time: 0, Tasks: 1 << 20, Bytes: 1 << 20}, mostAtOnce},
		"none":  {listing.Bounds{Time: time.Hour, Tasks: 1 << 20, Bytes: 1 << 20}, many},
	} {
		found, after := 0, ""
		for pages := 0; pages == 0 || after != "" && found < many; pages++ {
			f := expect.Result(listing.New(t.Context(), s, task.Query{}, after)).Value(t)
			f.Bounds = c.bounds
			page := expect.Result(f.Page(2 * many)).Value(t)
			if pages == 0 {
				expect.Equal(t, page.Looked, c.looked, name)
			}
			for _, one := range page.Tasks {
				want := int64(many - found)
				expect.MustTrue(t, one.ID == want, name, "got task", one.ID, "want", want)
				found++
			}
			if after = page.Next; c.looked == 1 && pages == 3 {
				break // all other pages would be like this page
			}
		}
		if c.looked > 1 {
			expect.Equal(t, found, many, name)
		}
	}
}

// A walk ends with its context, also in the middle of a page: a task may need long. What a page has read is charged to
// the account, and given back unless the page goes on holding it.
func TestWalkEndsWithItsContext(t *testing.T) {
	cfg := testspace.Config(t, testspace.Embedded(t))
	m, s := testspace.Manager(t, cfg), testspace.Connect(t, cfg)
	const many = 40
	for i := range many {
		expect.Result(m.Open(t.Context(), testspace.Define("p", "rsync:/p/run.sh", strings.Repeat("x", 1000*(1+i%2))))).OK(t)
	}
	bytes, account := pool.New(1<<20), &pool.Account{}
	account.Begin(bytes, "a")
	ctx, cancel := context.WithCancel(pool.With(t.Context(), account))
	all := func(*task.Task) []redisstate.TextsOf { return []redisstate.TextsOf{listing.OfTask} }
	taken := 0
	expect.NoError(t, listing.Each(ctx, s, task.Query{}, all, func(*task.Task) bool {
		expect.Compare(t, bytes.Taken(), ">=", many*1500, "bytes of the page")
		taken++
		return true
	}))
	expect.Equal(t, taken, many)
	expect.Equal(t, bytes.Taken(), 0, "bytes after all pages")
	page := expect.Result(listing.Find(ctx, s, task.Query{Input: strings.Repeat("x", 1001)}, "", many)).Value(t)
	expect.Len(t, page.Tasks, many/2)
	expect.Compare(t, bytes.Taken(), ">=", many/2*2000, "bytes of a page")
	expect.Compare(t, bytes.Taken(), "<", many/2*6000, "bytes of a page without the tasks that are not selected")
	taken = 0
	expect.FailsWith(t, listing.Each(ctx, s, task.Query{}, all, func(*task.Task) bool {
		cancel()
		taken++
		return true
	}), context.Canceled)
	expect.Equal(t, taken, 1, "tasks after the end")
	account.End()
	account.Begin(pool.New(2000), "a")
	_, err := listing.Find(pool.With(t.Context(), account), s, task.Query{}, "", many)
	expect.FailsWith(t, err, pool.ErrLarge)
}
