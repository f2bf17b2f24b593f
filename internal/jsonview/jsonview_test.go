package jsonview

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/expect"
)

type inner struct {
	Worker string `json:"worker,omitempty"`
}

type outer struct {
	ID int64 `json:"id"`
	inner
	At      time.Time            `json:"at,omitzero"`
	Seen    time.Time            `json:"seen" as:"unix"`
	Took    time.Duration        `json:"took"`
	Text    string               `json:"text,omitempty"`
	Names   []string             `json:"names"`
	Entered map[string]time.Time `json:"entered,omitempty"`
	Detail  int                  `json:"detail" only:"whole"`
	Raw     json.RawMessage      `json:"raw,omitempty"`
	Nested  *inner               `json:"nested,omitempty"`
	Hidden  int
}

func TestOf(t *testing.T) {
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600))
	for name, c := range map[string]struct {
		v     outer
		parts []string
		want  string
	}{
		"zero": {outer{}, nil, `{"id":0,"seen":0,"took":0,"names":[]}`},
		"full": {
			outer{
				ID: 7, inner: inner{"w<1>"}, At: at, Seen: at, Took: 1500 * time.Millisecond, Text: "\xff", Names: []string{"a"},
				Entered: map[string]time.Time{"open": at}, Detail: 3, Raw: json.RawMessage(`{"n":1}`), Nested: &inner{"x"},
			},
			[]string{"whole"},
			`{"id":7,"worker":"w<1>","at":"2030-01-02T02:04:05.000000Z","seen":1893549845,"took":1.5,"text":{"base64":"/w=="},"names":["a"],` +
				`"entered":{"open":"2030-01-02T02:04:05.000000Z"},"detail":3,"raw":{"n":1},"nested":{"worker":"x"}}`,
		},
	} {
		expect.Equal(t, string(expect.Result(Of(c.v, c.parts...).MarshalJSON()).Value(t)), c.want, name)
	}
}

func TestObject(t *testing.T) {
	o := Of(outer{ID: 1})
	o.Set("id", 2)
	o.Delete("took", "seen")
	o.Merge(Object{{"id", 9}, {"new", "\xfe"}, {"x", true}})
	o.Set("last", "\xfe")
	got, err := o.MarshalJSON()
	want := `{"id":2,"names":[],"new":"\ufffd","x":true,"last":{"base64":"/g=="}}`
	expect.NoError(t, err)
	expect.Equal(t, string(got), want)
}
