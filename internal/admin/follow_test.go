package admin

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/worker/record"
	"github.com/tdf-framework/tdf/manager"
)

// A reader that sees some of a worker's tails gets each byte once, or knows that text is missing. Most lines are equal, as those of a loop that waits.
func TestFollowedTails(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := (&record.Spool{}).InMemory(record.RoundRef{}, false)
		stdout, stderr := r.Writers()
		var whole, got [2]strings.Builder
		receive := func(text string) {
			for _, c := range text {
				got[strings.IndexByte("oe", byte(c)|0x20)].WriteRune(c)
			}
		}
		var reader tailReader
		var round manager.Round
		missing := false
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			n := rapid.SampledFrom([]int{0, 1, 3, 700, 5000}).Draw(t, "lines")
			m := rapid.IntRange(0, 2).Draw(t, "errors")
			fmt.Fprint(io.MultiWriter(stdout, &whole[0]), strings.Repeat("o", n))
			fmt.Fprint(io.MultiWriter(stderr, &whole[1]), strings.Repeat("e", m))
			tail, _ := r.Tail(nil)
			round.Tail, round.TailEnd = tail.Text, tail.TailEnd
			if rapid.Bool().Draw(t, "look") {
				text, skipped := reader.next(&round)
				missing = missing || skipped
				receive(text)
			}
		}
		round.Tail, round.Output, round.Error = "", whole[0].String(), whole[1].String()
		last := reader.rest(&round)
		receive(last.Text)
		out, failure := whole[0].Len()-got[0].Len(), whole[1].Len()-got[1].Len()
		if last.Unknown || out < 0 || failure < 0 || missing != (out+failure > 0) {
			t.Errorf("%d bytes of stdout and %d of stderr are missing; said: %v, %v", out, failure, missing, last.Unknown)
		}
	})
}

// Of a task whose worker sends no positions, and of an output that the worker has cut or emptied, the rest is unknown.
func TestUnknownRest(t *testing.T) {
	var none, reader tailReader
	text, skipped := reader.next(&manager.Round{Tail: "a\n", TailEnd: task.ParseTailEnd("", "a\n")})
	expect.Equal(t, text, "a\n")
	expect.True(t, !skipped, "the first tail follows a gap")
	whole, cut := &manager.Round{Output: "a\nb\n", OutputBytes: 4}, &manager.Round{Output: "a\nb\n", OutputBytes: 5}
	expect.Equal(t, reader.rest(whole), OutputPart{Unknown: true})
	expect.Equal(t, none.rest(whole), OutputPart{Text: "a\nb\n"})
	expect.Equal(t, none.rest(cut), OutputPart{Text: "a\nb\n"})
	reader.at = task.TailEnd{All: 2, Stdout: 2}
	expect.Equal(t, reader.rest(whole), OutputPart{Text: "b\n"})
	expect.Equal(t, reader.rest(cut), OutputPart{Unknown: true})
	reader.at.Stdout = 5
	expect.Equal(t, reader.rest(whole), OutputPart{Unknown: true})
}
