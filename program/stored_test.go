package program_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/managing"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/program"
	"github.com/tdf-framework/tdf/redisstate/stages"
)

const source = "https://example.org/run.sh"

// Uses counts the tasks of a program over many pages. Remove keeps a program that an unfinished task uses.
func TestRemove(t *testing.T) {
	cfg := testspace.Config(t, redistest.Shared(t))
	m := testspace.Manager(t, cfg)
	var sources []string
	for _, archive := range []string{"a", "b"} {
		s := expect.Result(program.Put(t.Context(), m, []byte(archive))).Value(t)
		sources = append(sources, s)
	}
	var all []manager.Definition
	for i := range 2500 {
		all = append(all, testspace.Define([]string{"p", "q"}[i%2], sources[0], ""), testspace.Define("p", source, ""))
	}
	ids := expect.Result(testspace.IDs(m.Open(t.Context(), all...))).Value(t)
	needed, free := sources[0][len("redis:"):], sources[1][len("redis:"):]
	uses, err := program.Uses(t.Context(), m)
	use := uses[needed]
	expect.NoError(t, err)
	expect.Equal(t, use.Tasks, 2500)
	expect.Equal(t, use.Unfinished, 2500)
	expect.True(t, slices.Contains(ids, use.ID), uses, err)
	expect.Equal(t, use.Names, []string{"p", "q"})
	expect.Len(t, uses, 1)
	var used *program.UsedError
	if err := program.Remove(t.Context(), m, free, needed); !errors.As(err, &used) || used.SHA256 != needed || used.Tasks != 2500 {
		t.Errorf("got %v", err)
	}
	expect.Len(t, expect.Result(program.List(t.Context(), m)).Value(t), 2, "a program was removed")
	store := managing.Of(m).Store
	must(t, store.Conn.Redis.HSet(t.Context(), store.Keys.Pipelines(), "pipeline/stage", "stored 0 1 X "+free).Err())
	uses = expect.Result(program.Uses(t.Context(), m)).Value(t)
	expect.Equal(t, uses[free], program.Use{Later: "the stage pipeline/stage"})
	err = program.Remove(t.Context(), m, free)
	expect.Contains(t, fmt.Sprint(err), "the stage pipeline/stage will open tasks of it")
	expect.Equal(t, tdf.CodeOf(err), tdf.CodeConflict)
	must(t, stages.Of(store).RemoveStageRecords(t.Context(), []string{"pipeline/stage"}))
	expect.Result(m.Cancel(t.Context(), manager.ByIDs(ids...)...)).OK(t)
	uses, err = program.Uses(t.Context(), m)
	expect.NoError(t, err)
	expect.Equal(t, uses[needed].Tasks, 2500)
	expect.Equal(t, uses[needed].Unfinished, 0)
	for range 2 { // a second removal of the same program is not an error
		must(t, program.Remove(t.Context(), m, needed))
	}
	stored := expect.Result(program.List(t.Context(), m)).Value(t)
	expect.MustLen(t, stored, 1)
	expect.Equal(t, stored[0].SHA256, free)
}
