package task

import (
	"encoding/json"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// A JSON text is read as package json reads it, whether it has escapes or not, except that half of a character is an error.
func TestJSONText(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`""`, `"a"`, `"é\u2028"`, `"a\u0026b\/\n\"\\"`, `"\ud83d\ude00"`, "\"\xff\"", `"` + "\u202e" + `"`,
		`null`, `1`, `"a`, `a"`, `"`, "\"\n\"", `"a"b"`, `[]`, ``,
	} {
		var want string
		wrong := json.Unmarshal([]byte(text), &want)
		var got JSONText
		expect.Equal(t, got.UnmarshalJSON([]byte(text)) == nil, wrong == nil, text)
		expect.Equal(t, string(got), want, text)
	}
	for _, text := range []string{`"\ud83d"`, `"\ude00\ud83d"`, `"\\\ud83d\n"`} {
		expect.Fails(t, new(JSONText).UnmarshalJSON([]byte(text)), "is half of a character", text)
	}
	var bytes JSONText
	expect.NoError(t, bytes.UnmarshalJSON([]byte(`{"base64":"/w=="}`)))
	expect.Equal(t, string(bytes), "\xff", "bytes")
}
