package worker

import (
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
)

// A program can say that this machine cannot run it. Its task is released, unless the program has succeeded.
func TestProgramsSayThatTheyAreUnfit(t *testing.T) {
	w := newWorld(t)
	w.script("p", "#!/bin/sh\nprintf \"$1\" >\"$TDF_DIR/unfit\"\nexit $2\n")
	for input, want := range map[string]struct {
		state tdf.State
		text  string
	}{
		`'no directory /data' 1`: {tdf.Open, "no directory /data"},
		`'' 1`:                   {tdf.Open, "the program gives no reason"},
		`'ignored' 0`:            {tdf.Succeeded, ""},
	} {
		id := w.open(input)
		w.runOnce(w.worker())
		expect.Equal(t, w.task(id).State, want.state, input)
		expect.Contains(t, w.task(id).Log, want.text, input)
		must(t, w.client().Del(t.Context(), w.store.Keys.OpenSet("")).Err())
	}
}
