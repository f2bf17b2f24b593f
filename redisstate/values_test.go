package redisstate

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
)

var valueKinds = []ValueKind{ValueSetting, ValuePause, ValueLimit, ValueMark, ValueStage}

// allValues returns all values of a namespace, as lines in alphabetical order.
func allValues(t *testing.T, s *Store) []string {
	t.Helper()
	var all []string
	for _, kind := range valueKinds {
		for v, err := range s.Values(t.Context(), kind) {
			must(t, err)
			must(t, v.Validate())
			all = append(all, fmt.Sprintf("%s %s %s", v.Kind, v.Name, v.Text))
		}
	}
	slices.Sort(all)
	return all
}

// Another namespace gets the same values. The calls that set them accept them as their own.
func TestRestoreValues(t *testing.T) {
	onEach(t, func(t *testing.T, s *Store) {
		must := func(err error) {
			t.Helper()
			must(t, err)
		}
		mustOpen(t, s, inGroup("a"), inGroup("p/one"))
		must(s.ChangeSetting(t.Context(), tdf.SettingMaxTasks, "100"))
		must(s.CloseGroup(t.Context(), "a"))
		must(s.SetLimit(t.Context(), "db", tdf.Limit{AtMost: 2, Starts: 3, Per: 1.5}))
		_, err := s.Pause(t.Context(), "me too", tdf.Pausable{}, tdf.Pausable{Queue: "crawl"}, tdf.Pausable{Group: "a b"})
		must(err)
		stage := tdf.StageRecord{Phase: tdf.StageOpening, Done: 3, Digest: "ab"}
		s.Redis.HSet(t.Context(), s.Keys.Pipelines(), "p/one", stage.String())
		want := allValues(t, s)
		expect.MustLen(t, want, 7, "values")

		other := connect(t, s.Redis.Options().Addr, s.Keys.Namespace()+"-other")
		mustOpen(t, other, inGroup("a"))
		version := other.Redis.HGet(t.Context(), other.Keys.Partitions(), "version").Val()
		for range 2 { // a repeated call changes nothing
			for _, kind := range valueKinds {
				var values []Value
				for v, err := range s.Values(t.Context(), kind) {
					must(err)
					values = append(values, v)
				}
				outcomes := expect.Result(other.RestoreValues(t.Context(), values...)).Value(t)
				expect.True(t, !slices.ContainsFunc(outcomes, func(o ValueOutcome) bool { return o != ValueRestored }), kind, outcomes)
			}
			expect.Equal(t, allValues(t, other), want, "restored")
		}
		expect.NotEqual(t, other.Redis.HGet(t.Context(), other.Keys.Partitions(), "version").Val(), version, "claims do not read the restored pauses")
		mark := expect.Result(other.GroupMark(t.Context(), "a")).Value(t)
		expect.Equal(t, mark.Mark, tdf.GroupClosed)
		expect.NotEqual(t, mark.Since, 0)
		records, invalid, err := other.StageRecords(t.Context(), []string{"p/one"})
		expect.NoError(t, err)
		expect.NoError(t, invalid[0])
		expect.Equal(t, records[0], stage)

		// Existing values stay. A group without tasks gets no mark.
		outcomes := expect.Result(other.RestoreValues(t.Context(), Value{ValueLimit, "db", "at_most=7"}, Value{ValueLimit, "new", "at_most=1"})).Value(t)
		expect.Equal(t, fmt.Sprint(outcomes), fmt.Sprint([]ValueOutcome{ValueKept, ValueRestored}))
		outcomes, err = other.RestoreValues(t.Context(), Value{ValueMark, "a", "decided 5"}, Value{ValueMark, "none", "closed 5"})
		expect.NoError(t, err)
		expect.Equal(t, fmt.Sprint(outcomes), fmt.Sprint([]ValueOutcome{ValueKept, ValueNoGroup}))
		expect.Equal(t, len(allValues(t, other)), len(want)+1, "values")
	})
}

// Invalid values are refused before anything is written.
func TestInvalidValues(t *testing.T) {
	s := newStore(t)
	mustOpen(t, s, inGroup("a"))
	long := strings.Repeat("x", maxValueText)
	for _, v := range []Value{
		{"", "", ""},
		{"other", "a", "b"},
		{ValueSetting, "max_tasks", "0"},
		{ValueSetting, "other", "1"},
		{ValuePause, "queue=a;b", "5 me"},
		{ValuePause, "queue=", "5 me"},
		{ValuePause, "group=\x00", "5 me"},
		{ValuePause, "", "5 me"},
		{ValuePause, "namespace", "me"},
		{ValuePause, "namespace", "inf me"},
		{ValuePause, "namespace", "-1 me"},
		{ValuePause, "namespace", "5 " + long},
		{ValueLimit, "", "at_most=1"},
		{ValueLimit, "k", ""},
		{ValueLimit, "k", "at_most=-1"},
		{ValueLimit, "k", " at_most=1"},
		{ValueLimit, "a\nb", "at_most=1"},
		{ValueMark, "", "closed 5"},
		{ValueMark, "a", "open 5"},
		{ValueMark, "a", "closed"},
		{ValueMark, "a", "closed nan"},
		{ValueMark, "\xff", "closed 5"},
		{ValueStage, "a/b", ""},
		{ValueStage, "a/b", "stored 5 5 x"},
		{ValueStage, "", "opened"},
		{ValueStage, long, "opened"},
		{ValueStage, "a/b", "opening 1 " + long},
	} {
		_, err := s.RestoreValues(t.Context(), v)
		expect.MustTrue(t, err != nil, v, err)
		expect.Compare(t, len(err.Error()), "<=", 1000)
	}
	expect.Len(t, allValues(t, s), 0, "written")
}

// The number of limits and pauses is bounded. Hashes of a wrong type give errors, or no values.
func TestBoundsOfValues(t *testing.T) {
	s := newStore(t)
	var pauses []Value
	for i := range tdf.MaxPaused + 1 {
		pauses = append(pauses, Value{ValuePause, fmt.Sprint("queue=q", i), "5 me"})
	}
	outcomes, err := s.RestoreValues(t.Context(), pauses...)
	expect.Fails(t, err, "more than 1000 of them; remove some")
	expect.Len(t, outcomes, 2*valuesPerCall)
	expect.Equal(t, len(allValues(t, s)), tdf.MaxPaused, "pauses")
	s.Redis.Set(t.Context(), s.Keys.Limits(), "text", 0)
	expect.Result(s.RestoreValues(t.Context(), Value{ValueLimit, "k", "at_most=1"})).Fails(t, "", "a hash of a wrong type gives no error")
	for v, err := range s.Values(t.Context(), ValueLimit) {
		t.Errorf("a value of a wrong type: %v, %v", v, err)
	}
}

// Stored definitions can be copied. Hostile data give an error.
func TestCopiedDefinitions(t *testing.T) {
	s := newStore(t)
	must(t, s.StoreDefinitions(t.Context(), "name", 3, []tdf.Properties{define("a"), define("b")}))
	encoded := expect.Result(s.EncodedDefinitions(t.Context(), "name", 3)).Value(t)
	all := expect.Result(DecodeDefinitions(encoded)).Value(t)
	expect.MustLen(t, all, 2)
	expect.Equal(t, all[1].Input, define("b").Input)
	none, err := s.EncodedDefinitions(t.Context(), "name", 4)
	expect.Equal(t, none, nil)
	expect.NoError(t, err)
	err = s.KeepDefinitions(t.Context(), "name")
	expect.NoError(t, err)
	expect.Equal(t, s.Redis.TTL(t.Context(), s.Keys.Definitions("name")).Val(), -1)
	for i := range encoded {
		cut, changed := encoded[:i], bytes.Clone(encoded)
		changed[i] ^= 0xff
		expect.Result(DecodeDefinitions(cut)).Fails(t, "", "the first", i, "bytes are valid")
		_, _ = DecodeDefinitions(changed) // it must not panic
	}
	var invalid bytes.Buffer
	bad := define("a")
	bad.Priority = 1 << 40
	must(t, gob.NewEncoder(&invalid).Encode([]tdf.Properties{bad}))
	for _, data := range [][]byte{invalid.Bytes(), make([]byte, MaxDefinitions+1), []byte("text")} {
		expect.Result(DecodeDefinitions(data)).Fails(t, "", data, "is valid")
	}
}
