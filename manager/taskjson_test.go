package manager

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
)

// The JSON of tasks has the form that docs/tdf.md describes in the section "JSON".
func TestTaskJSON(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		h     task.Hash
		whole bool
		want  string
	}{
		"open": {
			task.Hash{"state": "open", "program": "p", "source": "https://u:p@h/run.sh", "0:open": "1800000000", "meta": `{"a":1}`, "end_before": "9e9", "timeout": "5"},
			true,
			`{"id":7,"program":"p","state":"open","round":0,"entered":"2027-01-15T08:00:00.000000Z","claimable_from":"2027-01-15T08:00:00.000000Z","opened":"2027-01-15T08:00:00.000000Z","parameters":{"a":1},"source":"https://***@h/run.sh",` +
				`"end_before":"2255-03-14T16:00:00.000000Z","timeout":5,"fail_on":"stderr","max_fails":0,"max_timeouts":0,"max_losses":3,"fails":0,"timeouts":0,"losses":0,"releases":0,"reopens":0,"revision":0,` +
				`"rounds":[{"round":0,"entered":{"open":"2027-01-15T08:00:00.000000Z"}}],"log":[]}`,
		},
		"summary": {
			task.Hash{"state": "succeeded", "outcome": "succeeded", "program": "p", "source": "rsync:/p", "group": "g", "input": "\xff", "meta": "x", "0:worker": "w", "0:exit": "0", "0:seconds": "0.29"},
			false,
			`{"id":7,"campaign":"g","program":"p","state":"succeeded","outcome":"succeeded","round":0,"input":{"base64":"/w=="},"meta":"x","run":0,"worker":"w","exit":"0","seconds":0.29,"output_bytes":0,"error_bytes":0}`,
		},
		"running": {
			task.Hash{"state": "running", "program": "p", "source": "rsync:/p", "0:worker": "w", "0:claim": "c", "0:running": "1800000001.5", "0:last_output": "1800000003", "lease_until": "1800000030", "deadline": "inf", "0:progress": "0.5 half", "0:tail": "t"},
			true,
			`{"id":7,"program":"p","state":"running","round":0,"entered":"2027-01-15T08:00:01.500000Z","run":0,"worker":"w","started":"2027-01-15T08:00:01.500000Z","progress":{"fraction":0.5,"text":"half"},"tail":"t","source":"rsync:/p","fail_on":"stderr","max_fails":0,"max_timeouts":0,"max_losses":3,` +
				`"fails":0,"timeouts":0,"losses":0,"releases":0,"reopens":0,"revision":0,"last_output":"2027-01-15T08:00:03.000000Z","lease_until":"2027-01-15T08:00:30.000000Z","rounds":[{"round":0,"entered":{"running":"2027-01-15T08:00:01.500000Z"},"worker":"w","started":"2027-01-15T08:00:01.500000Z","progress":{"fraction":0.5,"text":"half"},"tail":"t"}],"log":[]}`,
		},
		"rejected": {
			task.Hash{"state": "failed", "outcome": "failed", "program": "p", "0:error": "rejected", "0:failed": "1800000000"},
			false,
			`{"id":7,"program":"p","state":"failed","outcome":"failed","round":0,"entered":"2027-01-15T08:00:00.000000Z","error":"rejected","error_whole":true}`,
		},
	} {
		one, _ := task.ParseTask(7, c.h)
		expect.Equal(t, string(expect.Result(TaskOf(one, c.whole).MarshalJSON()).Value(t)), c.want, name)
	}
}

// A query may search texts that it does not request. The JSON contains only the requested texts.
func TestSummaryJSONHasTheTextsThatWereAskedFor(t *testing.T) {
	t.Parallel()
	h := task.Hash{"state": "failed", "program": "p", "0:failed": "1800000000", "0:result": "7", "0:error": "e", "0:output": "o"}
	for read, want := range map[Read]string{
		ReadSummary: `}`,
		ReadResult:  `,"result":7}`,
		ReadOutput:  `,"result":7,"output":"o","output_whole":true,"error":"e","error_whole":true}`,
	} {
		one, _ := task.ParseTask(7, h)
		got, err := summary(one, read).MarshalJSON()
		want = `{"id":7,"program":"p","state":"failed","round":0,"entered":"2027-01-15T08:00:00.000000Z"` + want
		expect.NoError(t, err, read)
		expect.Equal(t, string(got), want, read)
	}
}

// docs/tdf.md lists the members of a summary's JSON, and the dependencies of a whole task.
func TestDocumentedJSON(t *testing.T) {
	t.Parallel()
	ran := task.Hash{
		"state": "failed", "outcome": "failed", "program": "p", "group": "g", "input": "eA==", "input_encoding": "base64", "meta": "x", "queue": "q", "priority": "3",
		"tags": "a", "resources": "cpus=2", "limit_key": "l", "owner": "o", "input_replaced": "1", "outputs_removed": "1800000004", "outputs_from": "1",
		"0:open": "1800000000", "0:worker": "w", "0:running": "1800000001", "0:executed": "1800000002", "0:failed": "1800000003", "0:exit": "1", "0:seconds": "1",
		"0:cpu_seconds": "1", "0:max_rss": "5", "0:program_sha256": "x", "0:progress": "0.5 a", "0:follow_ups": "1-2", "0:fetched": "2 30",
	}
	open := task.Hash{"state": "open", "program": "p", "0:open": "1800000000", "meta": "{}"}
	members := map[string]any{"after": nil, "after_any": nil}
	for _, h := range []task.Hash{ran, open} {
		one, _ := task.ParseTask(7, h)
		s := summary(one, ReadSummary)
		s.Namespace, s.Waits, s.WaitsForLimit = "n", true, true
		expect.NoError(t, json.Unmarshal(expect.Result(s.MarshalJSON()).Value(t), &members))
	}
	page := expect.Result(os.ReadFile("../docs/tdf.md")).Value(t)
	_, table, _ := strings.Cut(string(page), "\n| field | value |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var listed []string
	for _, cell := range regexp.MustCompile("(?m)^\\| (`.*?) \\|").FindAllStringSubmatch(table, -1) {
		for _, name := range regexp.MustCompile("`(.+?)`").FindAllStringSubmatch(cell[1], -1) {
			listed = append(listed, name[1])
		}
	}
	slices.Sort(listed)
	expect.Equal(t, cmp.Diff(slices.Sorted(maps.Keys(members)), listed), "", "-code +page")
}
