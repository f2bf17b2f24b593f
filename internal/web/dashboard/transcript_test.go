package dashboard

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
)

// joined returns HTML without the ends of spans that go on with the next part.
func joined(html string) string {
	for _, class := range []string{"f1", "b f10 g4", "b", "b f1"} {
		html = strings.ReplaceAll(html, `</span><span class="`+class+`">`, "")
	}
	return html
}

// However an output is divided, its parts look like the whole: colours go on, and no character and no control sequence is torn.
func TestDividedOutput(t *testing.T) {
	for _, text := range []string{
		"plain\n\x1b[31mred ä€😀\r\nstill\x1b[0m.\n", "10 %\r20 %\r\n\r", "\x1b[1;92;44mx\ny\x1b[m<script>\u202e", "\xff\xe2\x82", "\x1b[2J\x1b]0;t\a\x1b", strings.Repeat("ä", 1500) + "\x1b[31m\nx",
	} {
		var whole painter
		whole.write(text)
		whole.finish()
		for cut := range len(text) + 1 {
			var parts painter
			parts.write(text[:cut])
			parts.write(text[cut:])
			parts.finish()
			expect.Equal(t, joined(parts.b.String()), joined(whole.b.String()), text, cut)
		}
		var bytes painter
		for i := range len(text) {
			bytes.write(text[i : i+1])
		}
		bytes.finish()
		expect.Equal(t, joined(bytes.b.String()), joined(whole.b.String()), text)
	}
}

func newTranscript() *transcript { return &transcript{changed: make(chan struct{})} }

// print adds a text that follows all that the transcript has.
func (t *transcript) print(text string) { t.add(text, t.end()+len(text)) }

func (r *reader) read() (text, position string) {
	text, position, _ = r.next()
	return joined(text), position
}

// A page goes on exactly where it was: in the same transcript, and in that of another process that knows only a later tail. If text is missing, it says so.
func TestPositions(t *testing.T) {
	here := newTranscript()
	here.print("tick\n")
	r := here.reader("")
	text, first := r.read()
	expect.Equal(t, text, "tick\n")
	here.add("tick\n\x1b[31mtick ", 15)
	here.print("tick")
	text, second := r.read()
	expect.Equal(t, text, `<span class="f1">tick tick</span>`)
	here.print("€\n")
	for position, want := range map[string]string{
		second: `<span class="f1">€</span>` + "\n",
		first:  `<span class="f1">tick tick€</span>` + "\n",
	} {
		text, _ := here.reader(position).read()
		expect.Equal(t, text, want, position)
	}
	there := newTranscript()
	there.print("tick\n\x1b[31mtick ")
	behind := there.reader(second)
	text, position := behind.read()
	expect.Equal(t, text, "")
	expect.Equal(t, position, second)
	there.print("tick€\nfour\n")
	text, _ = behind.read()
	expect.Equal(t, text, `<span class="f1">€</span>`+"\n"+`<span class="f1">four</span>`+"\n")
	later := newTranscript()
	later.add("tick\n", 1000)
	text, _ = later.reader(second).read()
	expect.Equal(t, text, outputMissing+"tick\n")
	later.round = 1
	text, _ = later.reader(second).read()
	expect.Equal(t, text, "tick\n", "another round")
	for _, hostile := range []string{"x", "....", "0.-1", "0.99999999999999999999", "0.1e9", strings.Repeat("0.", 1<<20), "0.\x00"} {
		text, _ := here.reader(hostile).read()
		expect.Contains(t, text, "tick\n", hostile[:min(len(hostile), 30)])
	}
	text, _ = here.reader("0.9999999").read()
	expect.Equal(t, text, "", "a position that no process has")
}

// A transcript and its pages are bounded, and keep their colours when the oldest text goes. A page that was too slow says that text is missing.
func TestLongTranscript(t *testing.T) {
	long := newTranscript()
	long.print("begin\x1b[31m")
	slow := long.reader("")
	slow.read()
	for i := range 3000 {
		long.print(fmt.Sprintf("%d %s\n", i, strings.Repeat("x", 90)))
	}
	long.print(strings.Repeat("<", 10<<20))
	expect.Compare(t, len(long.text), "<=", longestOutput, "bytes")
	for _, r := range []*reader{slow, long.reader("")} {
		text, _ := r.read()
		expect.Compare(t, len(text), "<=", 20*longestOutput)
		expect.Contains(t, text, `<span class="f1">&lt;`)
		expect.NotContains(t, text, "begin")
	}
	slow = long.reader("")
	slow.read()
	long.print("\n" + strings.Repeat("lines\n", 20_000))
	text, _ := slow.read()
	expect.Contains(t, text, strings.TrimSpace(outputMissing))
	n := strings.Count(text, "lines")
	expect.Compare(t, n, "<=", longestOutput/6)
	expect.Compare(t, n, ">=", longestOutput/6-10)
}

// Two hundred pages of a round read its output once, and a transcript that no page follows makes room for others.
func TestSharedTranscript(t *testing.T) {
	var all transcripts
	a := &manager.Round{Tail: "a", TailEnd: task.TailEnd{All: 1}}
	shared := all.of(&place{}, 1, a)
	var runs, readers atomic.Int64
	add := make(chan admin.OutputPart)
	shared.parts = func(ctx context.Context) iter.Seq2[admin.OutputPart, error] {
		runs.Add(1)
		return func(yield func(admin.OutputPart, error) bool) {
			for {
				select {
				case part := <-add:
					if !yield(part, nil) {
						return
					}
				case <-ctx.Done():
					yield(admin.OutputPart{}, ctx.Err())
					return
				}
			}
		}
	}
	var leaves []func()
	for range 200 {
		leaves = append(leaves, shared.enter())
		go func() {
			r := all.of(&place{}, 1, a).reader("")
			text, _, more := r.next()
			for text != "ab&lt;c" {
				<-more
				var news string
				news, _, more = r.next()
				text += news
			}
			readers.Add(1)
		}()
	}
	add <- admin.OutputPart{Text: "ab", End: 2}
	add <- admin.OutputPart{Text: "<c", End: 4}
	expect.Eventually(t, "each page has the output", func() bool { return readers.Load() == 200 })
	expect.Equal(t, runs.Load(), 1)
	for i := range 2 * maxTranscripts {
		all.of(&place{}, int64(i+2), a)
	}
	expect.Compare(t, len(all.all), "<=", maxTranscripts+1)
	expect.True(t, all.of(&place{}, 1, a) == shared, len(all.all), "transcripts")
	for _, leave := range leaves {
		leave()
	}
	expect.Equal(t, shared.readers, 0)
	shared.used = time.Time{}
	all.of(&place{}, 0, a)
	expect.True(t, all.of(&place{}, 1, a) != shared, "an unused transcript stays")
}
