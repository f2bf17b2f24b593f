package listing_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/listing"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/manager"
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
			f := expect.Result(listing.New(t.Context(), s, tdf.Query{}, after)).Value(t)
			f.Bounds = c.bounds
			page := expect.Result(f.Page(2 * many)).Value(t)
			if pages == 0 {
				expect.Equal(t, page.Looked, c.looked, name)
			}
			for _, task := range page.Tasks {
				want := int64(many - found)
				expect.MustTrue(t, task.ID == want, name, "got task", task.ID, "want", want)
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
