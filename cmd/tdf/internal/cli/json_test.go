package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/format"
)

// JSON and texts contain no character that controls a terminal or that it does not show. The values in JSON stay the same.
func TestHiddenCharactersAreEscaped(t *testing.T) {
	const hidden = "\u007f\u0085\u009b\u00ad\u061c\u200b\u200e\u2028\u2029\u202a\u202e\u2060\u2066\u2069\ufeff\U000e0041"
	value := "a" + hidden + "é𝒜"
	raw := json.RawMessage(`"` + value + `"`)
	var b strings.Builder
	expect.NoError(t, JsonLines(&b).Encode(map[string]any{"text": value, "raw": raw}))
	line := strings.TrimSuffix(b.String(), "\n")
	for _, text := range []string{line, format.Printable(value), format.OneLine(value, 0)} {
		i := strings.IndexAny(text, hidden)
		expect.Compare(t, i, "<", 0)
		expect.Contains(t, text, "é𝒜", i)
	}
	var got struct{ Text, Raw string }
	expect.NoError(t, json.Unmarshal([]byte(line), &got), value)
	expect.Equal(t, got.Text, value)
	expect.Equal(t, got.Raw, value)
}
