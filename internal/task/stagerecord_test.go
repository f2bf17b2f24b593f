package task

import (
	"slices"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

func TestStageRecords(t *testing.T) {
	for _, r := range []StageRecord{
		{},
		{Phase: StageOpened},
		{Phase: StageDecided},
		{Phase: StageOpening, Done: 1_000_000, Digest: "ab"},
		{Phase: StageStored, Chunks: 1, Stored: "X"},
		{Phase: StageStored, Done: 4, Chunks: 5, Stored: "X"},
		{Phase: StageStored, Chunks: 1, Stored: "X", Programs: strings.Repeat("a", 64) + "," + strings.Repeat("0", 64)},
	} {
		expect.Result(ParseStageRecord(r.String())).Is(t, r)
	}
	for _, text := range []string{
		" ", "open", "opening", "opening 5", "opening -1 ab", "opening +1 ab", "opening 01 ab", "opening 1 ab c",
		"opening 99999999999999999999 ab", "opened ", "opened 1", "stored 1 2", "stored 2 2 X", "stored -1 2 X", "stored x 2 X", "stored 1 2 X ", "stored 1 2 X y", "stored 1 2 X " + strings.Repeat("a", 64) + ",",
		"decided\n", "\x00", strings.Repeat("opening ", 1000),
	} {
		if r, err := ParseStageRecord(text); err == nil || r != (StageRecord{}) || len(err.Error()) > 300 {
			t.Errorf("%.50q: %+v, %v", text, r, err)
		}
	}
}

func TestDigest(t *testing.T) {
	first := NextDigest("", &Properties{Program: "p", Input: "a"})
	different := []string{first}
	for _, d := range []Properties{{Program: "pa"}, {Program: "p", Meta: "a"}, {Program: "p", Input: "b"}, {Program: `p""`, Input: "a"}} {
		different = append(different, NextDigest("", &d))
	}
	different = append(different, NextDigest(first, &Properties{Program: "p", Input: "a"}))
	slices.Sort(different)
	expect.Len(t, slices.Compact(different), 6, "some digests are equal", different)
	again := NextDigest("", &Properties{Program: "p", Input: "a", Source: "other", StartAfter: 5})
	expect.Equal(t, again, first)
	expect.NotContains(t, first, " ", again)
}

func TestStageActions(t *testing.T) {
	record := func(p StagePhase) *StageRecord { return &StageRecord{Phase: p} }
	opened := StageRecord{Phase: StageOpened}
	some := func(s State) Counts { return Counts{s: 1, Archived: 3} }
	for name, c := range map[string]struct {
		status StageStatus
		want   StageAction
	}{
		"first":               {StageStatus{First: true}, StageStart},
		"opening":             {StageStatus{First: true, Record: *record(StageOpening)}, StageStart},
		"later":               {StageStatus{}, StageWaits},
		"stored":              {StageStatus{Record: *record(StageStored)}, StageFill},
		"not closed":          {StageStatus{Record: opened, Counts: some(Open), HasAfter: true}, StageClose},
		"unfinished":          {StageStatus{Record: opened, Mark: GroupClosed, Counts: some(Running), HasAfter: true}, StageWaits},
		"complete":            {StageStatus{Record: opened, Mark: GroupClosed, Counts: some(Failed), HasAfter: true}, StageAfter},
		"complete, next":      {StageStatus{Record: opened, Mark: GroupClosed, Counts: some(Failed), HasAfter: true, Next: record("")}, StageAfter},
		"before each":         {StageStatus{Record: opened, Mark: GroupClosed, Counts: some(Succeeded), HasAfter: true, HasEach: true}, StageWaits},
		"after each":          {StageStatus{Record: opened, Mark: GroupClosed, Counts: some(Archived), HasAfter: true, HasEach: true}, StageAfter},
		"no tasks":            {StageStatus{Record: opened, HasAfter: true}, StageAfter},
		"no tasks, decided":   {StageStatus{Record: opened, HasAfter: true, Next: record(StageStored)}, StageDone},
		"decided":             {StageStatus{Record: opened, Mark: GroupDecided, Counts: some(Expired), HasAfter: true, Next: record(StageOpened)}, StageArchive},
		"decided, each":       {StageStatus{Record: opened, Mark: GroupDecided, Counts: some(Expired), HasAfter: true, HasEach: true, Next: record(StageOpened)}, StageWaits},
		"retried":             {StageStatus{Record: opened, Mark: GroupDecided, Counts: some(Open), HasAfter: true, Next: record(StageOpened)}, StageWaits},
		"archived":            {StageStatus{Record: opened, Mark: GroupDecided, Counts: some(Archived), HasAfter: true, Next: record(StageOpened)}, StageDone},
		"last, decided":       {StageStatus{Record: *record(StageDecided), Mark: GroupDecided, Counts: some(Archived), HasAfter: true}, StageDone},
		"last, archiving":     {StageStatus{Record: *record(StageDecided), Mark: GroupDecided, Counts: some(TimedOut), HasAfter: true}, StageArchive},
		"no function":         {StageStatus{Record: opened, Mark: GroupClosed, Counts: some(Succeeded)}, StageArchive},
		"no function, open":   {StageStatus{Record: opened, Mark: GroupClosed, Counts: some(Open)}, StageWaits},
		"no function, done":   {StageStatus{Record: opened, Mark: GroupClosed, Counts: some(Archived)}, StageDone},
		"no function, empty":  {StageStatus{Record: opened}, StageDone},
		"only each":           {StageStatus{Record: opened, Mark: GroupClosed, Counts: some(Succeeded), HasEach: true}, StageWaits},
		"only each, archived": {StageStatus{Record: opened, Mark: GroupClosed, Counts: some(Archived), HasEach: true}, StageDone},
	} {
		expect.Equal(t, c.status.Action(), c.want, name, "action")
	}
}
