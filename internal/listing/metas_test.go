package listing_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/listing"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate"
)

// Metas returns each task of a group once, even while tasks move between states.
func TestMetasWhileTasksMove(t *testing.T) {
	cfg := testspace.Config(t, redistest.Shared(t))
	m := testspace.Manager(t, cfg)
	var all []manager.Definition
	var want []string
	for i := range 2500 {
		d := testspace.Define("p", "rsync:/p/run.sh", "")
		d.Group, d.Meta = "g", fmt.Sprintf(`{"i":%d,"x":%q}`, i, strings.Repeat("x", i%4000))
		want = append(want, d.Meta)
		if i%3 == 0 { // every third task belongs to another group
			other := d
			other.Group = "h"
			all = append(all, other)
		}
		all = append(all, d)
	}
	expect.Result(m.Open(t.Context(), all...)).OK(t)
	store := expect.Result(redisstate.Connect(t.Context(), cfg.Redis, cfg.Namespace, testspace.Silent)).Value(t)
	defer store.Close()
	var got []string
	for meta, err := range listing.Metas(t.Context(), store, "g") {
		expect.NoError(t, err)
		if got = append(got, meta.Text); len(got)%100 == 0 {
			expect.Result(store.Claim(t.Context(), redisstate.ClaimParams{Worker: "w", Most: 120, Lease: 60})).OK(t)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	expect.Equal(t, got, want, "metas")
	counts := expect.Result(m.Counts(t.Context(), "g")).Value(t)
	expect.NotEqual(t, counts[task.Running], 0)
	expect.NotEqual(t, counts[task.Open], 0)
}

func TestMetasOfNobody(t *testing.T) {
	cfg := testspace.Config(t, redistest.Shared(t))
	m, store := testspace.Manager(t, cfg), testspace.Connect(t, cfg)
	for meta, err := range listing.Metas(t.Context(), store, "g") {
		t.Errorf("got %v, %v", meta, err)
	}
	d := testspace.Define("p", "rsync:/p/run.sh", "")
	d.Group = "g"
	expect.Result(m.Open(t.Context(), d, d)).OK(t)
	n := 0
	for meta, err := range listing.Metas(t.Context(), store, "g") {
		if n++; meta.Text != "" || err != nil {
			t.Errorf("got %v, %v", meta, err)
		}
		break // the caller may stop early
	}
	expect.Equal(t, n, 1, "tasks")
	store.Close()
	var last error
	for _, last = range listing.Metas(t.Context(), store, "g") {
	}
	expect.Fails(t, last, "", "a closed store returned no error")
}
