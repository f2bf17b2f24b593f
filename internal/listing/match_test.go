package listing

import (
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
)

func TestLiteral(t *testing.T) {
	for _, name := range []string{"p", "a*b", "a?", "[x]", `a\b`, "*"} {
		q := tdf.Query{Program: Literal(name), States: []tdf.State{tdf.Open}}
		for _, other := range []string{name, "p", "aXb", "x", "ab"} {
			task := &tdf.Task{Properties: tdf.Properties{Program: other}, State: tdf.Open}
			expect.Equal(t, head(&q, task), other == name, name, "matches", other)
		}
	}
}
