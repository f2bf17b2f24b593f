package wire

import (
	"context"
	"fmt"
	"reflect"
	"unicode/utf8"

	"github.com/tdf-framework/tdf/internal/pool"
)

// maxDepth is the largest depth of JSON in a body.
const maxDepth = 100

// valueBytes is about what a value of JSON needs in memory, in a slice or a map that grows.
const valueBytes = 64

// CheckJSON charges the account of a call for the values of a JSON text before they are read into a type, because a few
// bytes such as {} may become a large struct. It returns an error if the text is not UTF-8, or too deep. It reads no
// values, so the text may be invalid JSON. The parser would accept other bytes, and replace them or keep them for a
// program that cannot read them.
func CheckJSON(ctx context.Context, text []byte, into reflect.Type) error {
	if !utf8.Valid(text) {
		return Invalid("the JSON of the body is not UTF-8")
	}
	var values, structs int64
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++ // the next character does not end the string
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if c == '{' {
				structs++
			}
			if depth++; depth > maxDepth {
				return Invalid(fmt.Sprintf("the JSON of the body is deeper than %d levels", maxDepth))
			}
		case c == '}' || c == ']':
			depth = max(0, depth-1)
		case c == ',' || c == '\n':
			values++
		case c == 'n': // a null makes a struct, too
			structs++
		}
	}
	return pool.Take(ctx, values*valueBytes+structs*2*largest(into, map[reflect.Type]bool{}))
}

// largest returns the size of the largest value of which a type may have many. A slice that grows needs it twice.
func largest(t reflect.Type, seen map[reflect.Type]bool) int64 {
	if seen[t] {
		return 0
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Slice, reflect.Map, reflect.Pointer, reflect.Array:
		return max(int64(t.Elem().Size()), largest(t.Elem(), seen))
	case reflect.Struct:
		most := int64(0)
		for i := range t.NumField() {
			most = max(most, largest(t.Field(i).Type, seen))
		}
		return most
	}
	return 0
}
