package manager_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/redisstate"
)

// All of a group come, each once, also while they move from state to state.
func TestMetasWhileTasksMove(t *testing.T) {
	cfg := redisConfig(t, redistest.Shared(t))
	m := newManager(t, cfg)
	var all []tdf.Properties
	var want []string
	for i := range 2500 {
		d := m.Define("p", source, "")
		d.Group, d.Meta = "g", fmt.Sprintf(`{"i":%d,"x":%q}`, i, strings.Repeat("x", i%4000))
		want = append(want, d.Meta)
		if i%3 == 0 { // some of another group between them
			other := d
			other.Group = "h"
			all = append(all, other)
		}
		all = append(all, d)
	}
	if _, err := m.Open(t.Context(), all...); err != nil {
		t.Fatal(err)
	}
	store, err := redisstate.Connect(t.Context(), cfg.Redis, cfg.Namespace, silent)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	var got []string
	for meta, err := range m.Metas(t.Context(), "g") {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, meta); len(got)%100 == 0 {
			if _, err := store.Claim(t.Context(), redisstate.ClaimRequest{Worker: "w", Most: 120, Lease: 60}); err != nil {
				t.Fatal(err)
			}
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%d metas, want %d", len(got), len(want))
	}
	if counts, err := m.Counts(t.Context(), "g"); err != nil || counts[tdf.Running] == 0 || counts[tdf.Open] == 0 {
		t.Errorf("%v, %v: they did not move", counts, err)
	}
}

func TestMetasOfNobody(t *testing.T) {
	m := newManager(t, redisConfig(t, redistest.Shared(t)))
	for meta, err := range m.Metas(t.Context(), "g") {
		t.Errorf("got %q, %v", meta, err)
	}
	d := m.Define("p", source, "")
	d.Group = "g"
	if _, err := m.Open(t.Context(), d, d); err != nil {
		t.Fatal(err)
	}
	n := 0
	for meta, err := range m.Metas(t.Context(), "g") {
		if n++; meta != "" || err != nil {
			t.Errorf("got %q, %v", meta, err)
		}
		break // a caller may stop
	}
	if n != 1 {
		t.Errorf("%d tasks", n)
	}
	m.Close()
	var last error
	for _, last = range m.Metas(t.Context(), "g") {
	}
	if last == nil {
		t.Error("no error of a closed manager")
	}
}
