package redisstate

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
)

// The calls that set values accept restored fields as their own. Existing fields stay, a repeated call changes nothing,
// and a group without tasks gets no mark.
func TestRestoreFields(t *testing.T) {
	onEach(t, func(t *testing.T, s *Store) {
		mustOpen(t, s, inGroup("a"))
		all := map[string]tdf.Hash{
			"settings":         {tdf.SettingMaxTasks: "100"},
			"limits":           {"db": "at_most=2"},
			"paused":           {"namespace": "5 me", "halt=3=a": "6 me"},
			"groups":           {"a": "closed 5"},
			"definitions:NAME": {"0": "data"},
			"pipelines":        {"p/one": "opening 3 ab"},
			"periodic":         {"nightly": "{}"},
		}
		for range 2 {
			for key, fields := range all {
				expect.Len(t, expect.Result(s.RestoreFields(t.Context(), key, fields)).Value(t), 0, key)
				expect.Equal(t, tdf.Hash(s.Redis.HGetAll(t.Context(), s.Keys.Key(key)).Val()), fields)
			}
		}
		expect.NotEqual(t, s.Redis.HGet(t.Context(), s.Keys.Partitions(), "version").Val(), "", "claims do not read the pauses")
		expect.Result(s.GroupMark(t.Context(), "a")).Is(t, Mark{tdf.GroupClosed, 5})
		expect.Len(t, expect.Result(s.Paused(t.Context())).Value(t), 1)
		kept := expect.Result(s.RestoreFields(t.Context(), "limits", tdf.Hash{"db": "at_most=7", "new": "at_most=1"})).Value(t)
		expect.Equal(t, kept, map[string]string{"db": "the namespace has another value, which it keeps"})
		kept = expect.Result(s.RestoreFields(t.Context(), "groups", tdf.Hash{"a": "decided 5", "none": "closed 5"})).Value(t)
		expect.Len(t, kept, 2)
		expect.Contains(t, kept["none"], "the group has no tasks")
		expect.Equal(t, s.Redis.HGetAll(t.Context(), s.Keys.Groups()).Val(), map[string]string{"a": "closed 5"})
	})
}

// The number of limits and pauses is bounded. A hash of a wrong type gives an error, or no fields.
func TestBoundsOfFields(t *testing.T) {
	s := newStore(t)
	pauses := tdf.Hash{}
	for i := range tdf.MaxPaused + 1 {
		pauses[fmt.Sprint("queue=q", i)] = "5 me"
	}
	expect.Result(s.RestoreFields(t.Context(), "paused", pauses)).Fails(t, "more than 1000 of them; remove some")
	expect.Len(t, expect.Result(s.Paused(t.Context())).Value(t), 0)
	s.Redis.Set(t.Context(), s.Keys.Limits(), "text", 0)
	expect.Result(s.RestoreFields(t.Context(), "limits", tdf.Hash{"k": "at_most=1"})).Fails(t, "WRONGTYPE")
	must(t, s.Fields(t.Context(), "limits", func(name, text string) bool {
		t.Error("a field of a wrong type:", name, text)
		return true
	}))
}

// Hostile definitions give an error.
func TestHostileDefinitions(t *testing.T) {
	s := newStore(t)
	must(t, s.StoreDefinitions(t.Context(), "name", 3, []tdf.Properties{define("a"), define("b")}))
	encoded := expect.Result(s.EncodedDefinitions(t.Context(), "name", 3)).Value(t)
	expect.NoError(t, CheckField("definitions:name", "3", encoded))
	expect.Result(s.EncodedDefinitions(t.Context(), "name", 4)).Is(t, "")
	for i := range encoded {
		expect.Fails(t, CheckField("definitions:name", "3", encoded[:i]), "", "the first", i, "bytes are valid")
		changed := []byte(encoded)
		changed[i] ^= 0xff
		_ = CheckField("definitions:name", "3", string(changed)) // it must not panic
	}
	var invalid bytes.Buffer
	bad := define("a")
	bad.Priority = 1 << 40
	must(t, gob.NewEncoder(&invalid).Encode([]tdf.Properties{bad}))
	for _, data := range []string{invalid.String(), string(make([]byte, maxDefinitions+1)), "text"} {
		expect.Fails(t, CheckField("definitions:name", "3", data), "")
	}
}
