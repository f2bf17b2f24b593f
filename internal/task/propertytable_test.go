package task

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-framework/tdf/internal/expect"
)

// sample returns properties in which the property of the row has another value than its default.
func sample(t *testing.T, row *Property) Properties {
	t.Helper()
	for _, text := range []string{"7", "1.5", "rsync:/q/run.sh", "exit", "archived", "yes", "base64", "cpus=2", "q", strings.Repeat("0", 64) + ":7:a/b"} {
		d := Defaults("p", "rsync:/p/run.sh", "1234")
		if before := row.Text(&d); row.Set(&d, text) == nil && row.Text(&d) != before && row.Text(&d) != row.Preset() {
			return d
		}
	}
	t.Fatalf("no text is a value of %s, %s", row.Name, row.Want)
	return Properties{}
}

// Each property keeps its value when it is written to Redis, to JSON or into a Definition or Changes, and read again.
func TestEachPropertyKeepsItsValue(t *testing.T) {
	for i := range PropertyTable {
		row := &PropertyTable[i]
		t.Run(row.Name, func(t *testing.T) {
			d := sample(t, row)
			same := func(way string, got Properties, err error) {
				t.Helper()
				diff := cmp.Diff(d, got)
				expect.Equal(t, diff, "", way)
				expect.NoError(t, err, way, "-want +got", diff)
			}
			h := Hash{}
			for _, f := range d.OpenFields("ns") {
				h[f.Name] = f.Value
			}
			one, err := ParseTask(1, h)
			same("Redis", one.Properties, err)
			same("definition", d.Definition().Properties(usual), nil)

			text, _ := json.Marshal(d.Definition())
			var definition Definition
			err = json.Unmarshal(text, &definition)
			same("JSON of the definition", definition.Properties(usual), err)
			if !row.CanChange() {
				expect.Fails(t, row.SetChange(&Changes{}, row.Text(&d)), "", "SetChange accepts a property that cannot change")
				return
			}
			var c, back Changes
			expect.NoError(t, row.SetChange(&c, row.Text(&d)))
			same("changes", c.Apply(Defaults("p", "rsync:/p/run.sh", "1234")), nil)
			text, _ = json.Marshal(c)
			err = json.Unmarshal(text, &back)
			same("JSON of the changes", back.Apply(Defaults("p", "rsync:/p/run.sh", "1234")), err)
		})
	}
}

func TestJSONOfDefinitions(t *testing.T) {
	text := `{"after":{"tasks":[3],"group":"g"},"backoff":0.25,"campaign":"c","end_before":"2030-01-31T12:00:00.500000Z","input":{"base64":"/w=="},` +
		`"max_fails":0,"program":"p","source":"rsync:/p/run.sh","tags":["a","b"],"timeout":"inf"}`
	var d Definition
	expect.NoError(t, json.Unmarshal([]byte(text), &d))
	expect.Equal(t, d.Group, "c")
	expect.Equal(t, d.Input, "\xff")
	expect.Equal(t, d.Timeout, Longest)
	expect.Equal(t, d.Backoff.Seconds(), 0.25)
	expect.Equal(t, d.MaxTimeouts, nil)
	expect.Equal(t, d.After.Group, "g")
	expect.Equal(t, string(expect.Result(json.Marshal(d)).Value(t)), text)
}

// A change that removes the tags stays such a change in JSON.
func TestJSONOfRemovedTags(t *testing.T) {
	for _, none := range [][]string{nil, {}} {
		text, err := json.Marshal(Changes{Tags: &none})
		var back Changes
		if err == nil {
			err = json.Unmarshal(text, &back)
		}
		expect.NoError(t, err)
		expect.MustTrue(t, back.Tags != nil, text, back.Tags, err)
		expect.Len(t, *back.Tags, 0)
	}
}

// A wrong value or an unknown property in JSON is an error that names the property.
func TestInvalidJSONOfDefinitions(t *testing.T) {
	for text, want := range map[string]string{
		`{"timeout":"1m"}`:              `timeout: "1m" is not a number of seconds above 0, or inf`,
		`{"timeout":0}`:                 `timeout: 0 is not a number of seconds above 0, or inf`,
		`{"end_before":1893456000}`:     `end_before: 1893456000 is not an RFC 3339 time such as 2030-01-31T12:00:00Z, or inf`,
		`{"max_fails":"2"}`:             `max_fails: "2" is not a whole number from 0 to 1000000000`,
		`{"input":"\ud800"}`:            `input: "\ud800" is not the arguments of run.sh`,
		`{"program":3}`:                 `program: 3 is not the name of the program's directory on a worker`,
		`{"fail_on":"never"}`:           `fail_on: "never" is not one of stderr, exit, any`,
		`{"after":[1]}`:                 "after: [1] is not an object such as {\"tasks\": [1, 2]}, with tasks, places or group",
		`{"after_any":{"tasks":["x"]}}`: "after_any: {\"tasks\":[\"x\"]} is not an object such as {\"tasks\": [1, 2]}, with tasks, places or group",
		`{"group":"g"}`:                 `"group": no task has this property`,
		`{"campaign":"a\u0000"}`:        `campaign: `,
		`{"id":1}`:                      `"id": no task has this property`,
		`{"campaign":"c","unique":""}`:  ``,
	} {
		var d Definition
		err := json.Unmarshal([]byte(text), &d)
		if want == "" && err == nil {
			continue
		}
		expect.MustTrue(t, err != nil, text, err, "want", want)
		if err.Error() != want {
			expect.True(t, strings.HasSuffix(want, ": "), text, err, "want", want)
			expect.True(t, strings.HasPrefix(err.Error(), want), text, err, "want", want)
		}
		expect.True(t, errors.As(err, new(*PropertyError)), text, err, "want", want)
	}
	err := json.Unmarshal([]byte(`{"campaign":"c"}`), &Changes{})
	expect.MustTrue(t, err != nil, err)
	expect.Equal(t, err.Error(), "campaign: cannot change")
}
