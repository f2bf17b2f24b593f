package redisstate

import (
	"fmt"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
)

// With the setting original_workers, tasks whose programs the original TDF cannot fetch are not in the list that its workers read.
// This project's workers claim them as usual.
func TestOriginalWorkersGetOnlyTheirTasks(t *testing.T) {
	s := newStore(t)
	stored, theirs := define("x"), define("y")
	var err error
	stored.Source, err = s.PutProgram(t.Context(), []byte("archive"))
	must(t, err)
	listed := func() string { return fmt.Sprint(s.Redis.ZRange(t.Context(), s.Keys.List(tdf.Open), 0, -1).Val()) }
	set := func(value string) {
		must(t, s.ChangeSetting(t.Context(), tdf.SettingOriginalWorkers, value))
		forgetRoom(s)
	}
	early := mustOpen(t, s, stored)[0]
	set("yes")
	ids := mustOpen(t, s, stored, theirs)
	outcomes := expect.Result(s.Apply(t.Context(), "m", Unit{Open: []tdf.Properties{stored}})).Value(t)
	must(t, outcomes[0].Err)
	expect.Equal(t, listed(), fmt.Sprint([]int64{early, ids[1]}), "in the list open")
	found, err := s.Examine(t.Context(), append(ids, early, outcomes[0].IDs[0]))
	must(t, err)
	expect.True(t, len(found) == 1 && found[0].ID == early, "found", found)
	if _, err := s.Repair(t.Context(), "server", found); err != nil || listed() != fmt.Sprint(ids[1:]) {
		t.Errorf("in the list open after the repair: %s, %v", listed(), err)
	}
	mustBeSound(t, s)
	expect.MustLen(t, mustClaim(t, s, 4), 4, "claims")
	set("no")
	m, err := task(t, s, put(t, s, tdf.Expired)).Reopen()
	mustApply(t, s, m, err)
	mustBeSound(t, s)
}
