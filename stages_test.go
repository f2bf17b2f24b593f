package tdf

import (
	"slices"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

func inRow(stages ...string) (after []StagesInRow) {
	for i := 0; i+1 < len(stages); i += 2 {
		after = append(after, StagesInRow{stages[i], stages[i+1]})
	}
	return after
}

func TestPlan(t *testing.T) {
	for name, c := range map[string]struct {
		plan Plan
		want string // the stages, or a part of the error
	}{
		"one stage":        {Plan{First: []string{"a"}}, "a"},
		"three stages":     {Plan{First: []string{"a"}, After: inRow("b", "c", "a", "b", "c", "")}, "a b c"},
		"two chains":       {Plan{First: []string{"x", "a"}, After: inRow("a", "b")}, "x a b"},
		"each":             {Plan{First: []string{"a"}, After: inRow("a", "b"), Each: []string{"b", "a"}}, "a b"},
		"no start":         {Plan{After: inRow("a", "b")}, `pipeline "p" has no start`},
		"never opened":     {Plan{First: []string{"a"}, After: inRow("x", "y")}, `stage "x" is never opened`},
		"each of nothing":  {Plan{First: []string{"a"}, Each: []string{"x"}}, `stage "x" is never opened`},
		"two starts":       {Plan{First: []string{"a", "a"}}, `stage "a" is opened twice`},
		"start and after":  {Plan{First: []string{"a", "b"}, After: inRow("a", "b")}, `stage "b" is opened twice`},
		"from two stages":  {Plan{First: []string{"a", "b"}, After: inRow("a", "c", "b", "c")}, `stage "c" is opened twice`},
		"cycle":            {Plan{First: []string{"a"}, After: inRow("a", "b", "b", "a")}, `stage "a" is opened twice`},
		"after itself":     {Plan{First: []string{"a"}, After: inRow("a", "a")}, `stage "a" is opened twice`},
		"separate cycle":   {Plan{First: []string{"a"}, After: inRow("x", "y", "y", "x")}, `stage "x" is never opened`},
		"two functions":    {Plan{First: []string{"a"}, After: inRow("a", "b", "a", "c")}, `stage "a": two functions run after it`},
		"two of each":      {Plan{First: []string{"a"}, Each: []string{"a", "a"}}, `stage "a": two functions handle its tasks`},
		"no name":          {Plan{Pipeline: "-", First: []string{""}}, "a"},
		"slash":            {Plan{First: []string{"a/b"}}, `stage: "a/b" contains a slash`},
		"control":          {Plan{First: []string{"a\x00"}}, "contains a control character"},
		"not UTF-8":        {Plan{First: []string{"a\xff"}}, "is not valid UTF-8"},
		"too long":         {Plan{First: []string{strings.Repeat("a", 198)}}, strings.Repeat("a", 198)},
		"longer":           {Plan{First: []string{strings.Repeat("a", 199)}}, "group: has 201 bytes; at most 200 are allowed"},
		"slash before":     {Plan{Pipeline: "p/q", First: []string{"a"}}, `pipeline: "p/q" contains a slash`},
		"newline in name":  {Plan{Pipeline: "p\n", First: []string{"a"}}, "contains a control character"},
		"long pipeline":    {Plan{Pipeline: strings.Repeat("p", 201), First: []string{"a"}}, "pipeline: has 201 bytes"},
		"next with spaces": {Plan{First: []string{"a"}, After: inRow("a", "b c")}, "a b c"},
		"invalid next":     {Plan{First: []string{"a"}, After: inRow("a", "b/c")}, `"b/c" contains a slash`},
	} {
		if c.plan.Pipeline == "" {
			c.plan.Pipeline = "p"
		}
		if name == "no name" {
			c.plan.Pipeline, c.want = "", "pipeline: is empty"
		}
		stages, err := c.plan.Stages()
		got := strings.Join(stages, " ")
		if err == nil {
			expect.MustEqual(t, got, c.want, name)
		}
		if err != nil {
			expect.Contains(t, err.Error(), c.want, name)
		}
	}
	expect.Result((&Plan{Pipeline: "p", First: []string{""}}).Stages()).Fails(t, "stage: is empty", "a start without a name")
}

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
