package wire

import (
	"reflect"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/pool"
)

func TestJSONOfBodies(t *testing.T) {
	t.Parallel()
	for body, ok := range map[string]bool{
		"": true, "{}": true, `"é"`: true, "\"caf\xe9\"": false, "]]]]": true, "\"": true, `"\`: true,
		strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth): true, strings.Repeat("[", maxDepth+1): false, strings.Repeat(`{"a":`, maxDepth+1): false,
		strings.Repeat("[]", 1000): true, `"` + strings.Repeat("[", 1000) + `"`: true, `"\"` + strings.Repeat("[", 1000) + `"`: true, `"\\"` + strings.Repeat("[", 1000): false,
	} {
		expect.Equal(t, CheckJSON(t.Context(), []byte(body), reflect.TypeFor[string]()) == nil, ok, len(body), "bytes", body)
	}
}

// Values are charged before they are read: structs by the size of the largest of which a type has many.
func TestMemoryForValues(t *testing.T) {
	t.Parallel()
	type large struct{ _ [1000]byte }
	type body struct{ Open *struct{ All []large } }
	for text, want := range map[string]int64{
		"1": 0, "[1,2,3]": 2 * valueBytes, `"{,"`: 0, `[{},null]`: valueBytes + 4000, "{}": 2000,
	} {
		p, account := pool.New(1<<20), &pool.Account{}
		account.Begin(p, "a")
		expect.NoError(t, CheckJSON(pool.With(t.Context(), account), []byte(text), reflect.TypeFor[body]()), text)
		expect.Equal(t, p.Taken(), want, text)
	}
}
