package record

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/worker/secrets"
)

func tail(t *testing.T, r *Record, want string, changed bool) {
	t.Helper()
	got, moved := r.Tail(nil)
	expect.MustEqual(t, got.Text, want)
	expect.MustEqual(t, moved, changed)
}

// textOf returns the text of the tail.
func textOf(r *Record, s *secrets.Secrets) string {
	tail, _ := r.Tail(s)
	return tail.Text
}

func TestTailIsInTheOrderSeen(t *testing.T) {
	r := open(t)
	tail(t, r, "", false)
	prints(t, r.Stderr, "E1\n")
	prints(t, r.Stdout, "O1\n")
	tail(t, r, "O1\nE1\n", true)
	tail(t, r, "O1\nE1\n", false)
	prints(t, r.Stderr, "E2\n")
	tail(t, r, "O1\nE1\nE2\n", true)
	prints(t, r.Stdout, "O2")
	tail(t, r, "O1\nE1\nE2\nO2", true)
}

func TestTailIsTheLast4KiB(t *testing.T) {
	r := open(t)
	prints(t, r.Stderr, "gone\n")
	r.Tail(nil)
	var all strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&all, "line %d\n", i)
		prints(t, r.Stdout, fmt.Sprintf("line %d\n", i))
		if i%300 == 0 {
			r.Tail(nil)
		}
	}
	got := textOf(r, nil)
	expect.True(t, strings.HasSuffix(all.String(), got), len(got), "bytes", got)
	expect.True(t, strings.HasPrefix(got, "line "), len(got), "bytes", got)
	expect.Compare(t, len(got), "<=", tailBytes)
	expect.Compare(t, len(got), ">=", tailBytes-lineBytes)
}

// If more output comes at once than the tail can hold, Tail does not join the texts before and after the gap.
func TestTailSkips(t *testing.T) {
	r := open(t)
	prints(t, r.Stdout, "first\n")
	r.Tail(nil)
	prints(t, r.Stdout, strings.Repeat("o", 1<<20)+"\nlast of stdout\n")
	got := textOf(r, nil)
	expect.Compare(t, len(got), "<=", tailBytes)
	expect.NotContains(t, got, "first")
	expect.True(t, strings.HasSuffix(got, "o\nlast of stdout\n"), len(got), "bytes", got)
	prints(t, r.Stderr, strings.Repeat("e", 1<<20))
	if got := textOf(r, nil); got != strings.Repeat("e", tailBytes) {
		t.Errorf("%d bytes: %.20q", len(got), got)
	}
}

func TestTailIsText(t *testing.T) {
	r := open(t)
	prints(t, r.Stdout, "\xff\x00x")
	tail(t, r, "\uFFFD\x00x", true)
	prints(t, r.Stdout, strings.Repeat("ä", 3000)) // one long line; a cut 4 KiB before its end would divide a character
	prints(t, r.Stdout, "x")
	got := textOf(r, nil)
	want := strings.Repeat("ä", 2047) + "x"
	expect.True(t, got == want, len(got), "bytes", got)
}

// Tail shows a character when the character is complete, even if the program writes to the other file between its
// bytes.
func TestTailOfHalfACharacter(t *testing.T) {
	r := open(t)
	prints(t, r.Stdout, "1 €"[:4])
	tail(t, r, "1 ", true)
	prints(t, r.Stderr, "E")
	tail(t, r, "1 E", true)
	prints(t, r.Stdout, "1 €"[4:])
	tail(t, r, "1 E€", true)
}

// With secrets, a line is shown when it is whole, so that a secret that is written in parts is masked.
func TestTailMasks(t *testing.T) {
	s := secret(t, "hunterXY")
	r := open(t)
	for i, c := range "a hunterXY, and huntsman." {
		prints(t, r.Stdout, string(c))
		expect.Equal(t, textOf(r, s), "", i)
	}
	prints(t, r.Stdout, "\nhunt")
	expect.Equal(t, textOf(r, s), "a ***, and huntsman.\n")
}

func TestTailOfAnEmptiedFile(t *testing.T) {
	r := open(t)
	prints(t, r.Stdout, "before\n")
	tail(t, r, "before\n", true)
	must(t, r.Stdout.Truncate(0))
	tail(t, r, "before\n", true)
	prints(t, r.Stdout, "x\n")
	tail(t, r, "before\nx\n", true)
	ends, _ := r.Tail(nil)
	expect.Equal(t, ends.TailEnd, task.TailEnd{All: 9, Stdout: 2})
}

// The position in stdout counts masked text. It is unknown once a secret may have been skipped.
func TestEndsOfTails(t *testing.T) {
	s := secret(t, "hunterXY")
	r := open(t)
	prints(t, r.Stdout, "a hunterXY b\xff\n")
	prints(t, r.Stderr, "ä\n")
	got, _ := r.Tail(s)
	expect.Equal(t, got, task.Tail{Text: "a *** b\uFFFD\nä\n", TailEnd: task.TailEnd{All: 14, Stdout: 9, Stderr: 3}})
	prints(t, r.Stdout, strings.Repeat("x", 2*tailBytes)+"\n")
	got, _ = r.Tail(s)
	expect.Equal(t, got.TailEnd, task.TailEnd{All: 15 + 2*tailBytes, Stdout: -1, Stderr: 3})
}

func TestSilent(t *testing.T) {
	r := open(t)
	prints(t, r.Stdout, "x")
	prints(t, r.Stderr, "y")
	hour := time.Now().Add(-time.Hour).Round(0) // without the monotonic clock, since the time of a file has none
	must(t, os.Chtimes(r.Stdout.Name(), hour, hour))
	must(t, os.Chtimes(r.Stderr.Name(), hour, hour.Add(-time.Minute)))
	least := time.Since(hour)
	got := r.Silent()
	expect.Compare(t, got, ">=", least)
	expect.Compare(t, got, "<=", time.Since(hour))
	must(t, os.Chtimes(r.Stderr.Name(), hour, hour.Add(2*time.Hour))) // the clock was set back
	expect.Equal(t, r.Silent(), 0, "silent for")
}
