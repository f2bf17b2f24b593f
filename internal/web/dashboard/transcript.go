package dashboard

import (
	"context"
	"fmt"
	"html/template"
	"iter"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/manager"
)

// A transcript is the end of what a running round has printed, stdout and stderr together. All pages that show the
// round share it: while a browser follows it, it asks Redis as often for two hundred of them as for one.
type transcript struct {
	round   int
	parts   func(context.Context) iter.Seq2[admin.OutputPart, error]
	mu      sync.Mutex
	text    string
	begin   int           // the position of text in all that the round has printed
	first   style         // at the beginning of text
	changed chan struct{} // closed when there is more
	readers int
	stop    context.CancelFunc
	used    time.Time
}

// maxTranscripts bounds the transcripts in memory, besides those that browsers follow.
const maxTranscripts = 200

// outputMissing stands where a part of the output is missing.
const outputMissing = "\n… a part of the output is missing here …\n"

// transcripts holds the transcripts of running rounds. The zero value is ready.
type transcripts struct {
	mu  sync.Mutex
	all map[string]*transcript
}

// of returns the transcript of a round, as read from Redis now.
func (c *transcripts) of(in *place, task int64, r *manager.Round) *transcript {
	parts := func(ctx context.Context) iter.Seq2[admin.OutputPart, error] {
		return follow(ctx, in.admin, task, r.Number)
	}
	key := fmt.Sprintf("%s.%d", in.taskName(task), r.Number)
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.all[key]
	if t == nil {
		c.makeRoom()
		t = &transcript{round: r.Number, parts: parts, changed: make(chan struct{})}
		c.all[key] = t
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.used = time.Now()
	t.add(r.Tail, int(r.TailEnd.All))
	return t
}

// makeRoom removes the transcript that no page has used for the longest time, if there are too many.
func (c *transcripts) makeRoom() {
	if c.all == nil {
		c.all = map[string]*transcript{}
	}
	oldest, idle := "", 0
	for key, t := range c.all {
		t.mu.Lock()
		if t.readers == 0 {
			idle++
			if oldest == "" || t.used.Before(c.all[oldest].used) {
				oldest = key
			}
		}
		t.mu.Unlock()
	}
	if idle >= maxTranscripts {
		delete(c.all, oldest)
	}
}

// end returns the position after text.
func (t *transcript) end() int { return t.begin + len(t.text) }

// add adds a part of the output that ends at a position, unless the transcript has it. If text is missing before the
// part, the transcript begins anew with it.
func (t *transcript) add(part string, end int) {
	known := t.end() - (end - len(part))
	if part == "" || end <= t.end() {
		return
	}
	if known < 0 {
		t.text, t.begin, t.first = "", end-len(part), style{}
	}
	t.text += part[max(known, 0):]
	if extra := len(t.text) - longestOutput; extra > 0 {
		p := painter{style: t.first}
		p.write(t.text[:extra])
		p.line, p.cut = 0, 0 // so that the end of a very long line is not all left out
		t.first, t.text, t.begin = p.style, strings.Clone(t.text[extra:]), t.begin+extra
	}
	close(t.changed)
	t.changed = make(chan struct{})
}

// enter reads the output as it arrives, until the last page has left.
func (t *transcript) enter() (leave func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.readers++
	if t.readers == 1 {
		ctx, stop := context.WithCancel(context.Background())
		t.stop = stop
		go t.run(ctx)
	}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.readers--
		if t.readers == 0 {
			t.stop()
		}
	}
}

// run adds the output as it arrives, until the round or ctx ends.
func (t *transcript) run(ctx context.Context) {
	for ctx.Err() == nil {
		for part, err := range t.parts(ctx) {
			if err != nil {
				break // the loop tries again
			}
			if part.Ended {
				return // the page shows the whole output from now on
			}
			t.mu.Lock()
			t.add(part.Text, int(part.End))
			t.mu.Unlock()
		}
		sleep(ctx, admin.FollowPause, nil)
	}
}

// follow yields the output of a round as it arrives.
func follow(ctx context.Context, a *admin.Admin, task int64, round int) iter.Seq2[admin.OutputPart, error] {
	t, r, err := a.Round(ctx, task, round)
	if err != nil {
		return func(yield func(admin.OutputPart, error) bool) { yield(admin.OutputPart{}, err) }
	}
	return a.FollowOutput(ctx, t, r)
}

// A reader is the position of a page in a transcript.
type reader struct {
	*transcript
	style style
	at    int
}

// reader returns a reader that goes on at a position, which an earlier reader has returned. Any other text is the
// beginning.
func (t *transcript) reader(position string) *reader {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := &reader{t, t.first, t.find(position)}
	if r.at >= t.begin {
		p := painter{style: t.first}
		p.write(t.text[:min(r.at, t.end())-t.begin])
		r.style = p.style
	}
	return r
}

// find returns the place of a position: the beginning for a text that is none. The place may be after the end, if
// another process had the output earlier.
func (t *transcript) find(position string) int {
	round, at, _ := strings.Cut(position, ".")
	place, err := strconv.Atoi(at)
	if err != nil || place < 0 || round != strconv.Itoa(t.round) {
		return t.begin
	}
	return place
}

// next returns what is new as HTML, the position after it, and a channel that is closed when there is more.
func (r *reader) next() (text, position string, more <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := painter{style: r.style}
	if r.at < r.begin {
		p.style = r.first
		p.held, p.line, p.cut = "", 0, 0
		p.write(outputMissing)
		r.at = r.begin
	}
	if end := r.end(); r.at < end {
		p.write(r.text[r.at-r.begin:])
		r.at, r.style = end, p.style
	}
	return p.b.String(), fmt.Sprintf("%d.%d", r.round, r.at), r.changed
}

// outputMark stands in the main part of a page where its transcript belongs. A stream of the page leaves it out,
// because it sends only what is new.
const outputMark template.HTML = "<!--output-->"

// withOutput returns the main part of a page with its transcript. The element data has the position at which the stream
// of the page goes on.
func (v *view) withOutput() template.HTML {
	if v.output == nil {
		return template.HTML(v.main)
	}
	text, position, _ := v.output.reader("").next()
	return template.HTML(strings.Replace(string(v.main), string(outputMark), `<data value="`+position+`"></data>`+text,
		1))
}
