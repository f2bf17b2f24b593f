package listing

import (
	"testing"

	"github.com/tdf-framework/tdf"
)

func TestLiteral(t *testing.T) {
	for _, name := range []string{"p", "a*b", "a?", "[x]", `a\b`, "*"} {
		q := tdf.Query{Program: Literal(name), States: []tdf.State{tdf.Open}}
		for _, other := range []string{name, "p", "aXb", "x", "ab"} {
			task := &tdf.Task{Properties: tdf.Properties{Program: other}, State: tdf.Open}
			if got := head(&q, task); got != (other == name) {
				t.Errorf("%q matches %q: %v", name, other, got)
			}
		}
	}
}
