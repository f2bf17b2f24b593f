package manager_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/manager"
)

// The tasks that name a program are counted over many pages, and one that is unfinished keeps its program.
func TestRemovePrograms(t *testing.T) {
	cfg := redisConfig(t, redistest.Shared(t))
	m := newManager(t, cfg)
	var sources []string
	for _, archive := range []string{"a", "b"} {
		s, err := m.PutProgram(t.Context(), []byte(archive))
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, s)
	}
	var all []tdf.Properties
	for i := range 2500 {
		all = append(all, m.Define([]string{"p", "q"}[i%2], sources[0], ""), m.Define("p", source, ""))
	}
	ids, err := m.Open(t.Context(), all...)
	if err != nil {
		t.Fatal(err)
	}
	needed, free := sources[0][len("redis:"):], sources[1][len("redis:"):]
	uses, err := m.ProgramUses(t.Context())
	if use := uses[needed]; err != nil || use.Tasks != 2500 || use.Unfinished != 2500 || !slices.Contains(ids, use.ID) || !slices.Equal(use.Names, []string{"p", "q"}) || len(uses) != 1 {
		t.Errorf("%+v, %v", uses, err)
	}
	var used *manager.ProgramUsedError
	if err := m.RemovePrograms(t.Context(), free, needed); !errors.As(err, &used) || used.SHA256 != needed || used.Tasks != 2500 {
		t.Errorf("got %v", err)
	}
	if stored, err := m.StoredPrograms(t.Context()); err != nil || len(stored) != 2 {
		t.Errorf("%v, %v: something was removed", stored, err)
	}
	if err := m.Cancel(t.Context(), ids...); err != nil {
		t.Fatal(err)
	}
	if uses, err = m.ProgramUses(t.Context()); err != nil || uses[needed].Tasks != 2500 || uses[needed].Unfinished != 0 {
		t.Errorf("after all were cancelled: %+v, %v", uses, err)
	}
	for range 2 { // again is no error
		if err := m.RemovePrograms(t.Context(), needed); err != nil {
			t.Fatal(err)
		}
	}
	stored, err := m.StoredPrograms(t.Context())
	if err != nil || len(stored) != 1 || stored[0].SHA256 != free {
		t.Errorf("%v, %v", stored, err)
	}
}
