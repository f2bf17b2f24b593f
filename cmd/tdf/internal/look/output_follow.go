package look

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/manager"
)

const followPause = 500 * time.Millisecond

// followRound prints the output of a round as it arrives, until the round ends.
func (p *printout) followRound(ctx context.Context, t *manager.Task) error {
	var tail tailReader
	if t.State == tdf.Open {
		p.sayOpen(t)
	} else {
		p.a.Say("round %d is running on %s; its output arrives from the worker's next heartbeat on, by default within 10 s", p.round, p.r.Worker)
	}
	for !roundEnded(t, p.round) {
		if err := p.printNew(&tail, p.r.Tail); err != nil {
			return err
		}
		if err := p.m.Admin().Follow(ctx, p.id); err != nil {
			return err
		}
		if err := cli.Sleep(ctx, followPause); err != nil {
			return err
		}
		var err error
		if t, err = p.read(ctx); err != nil {
			return err
		}
	}
	return p.printRest(&tail, t)
}

func (p *printout) sayOpen(t *manager.Task) {
	earlier := ""
	if t.Round > 0 {
		earlier = fmt.Sprintf("; output of the last run: tdf output %d", t.ID)
	}
	p.a.Say("waiting for round %d: task %d is open (see tdf explain %d)%s", p.round, t.ID, t.ID, earlier)
}

// printNew prints the part of an output's tail that is new.
func (p *printout) printNew(tail *tailReader, text string) error {
	added, skipped := tail.next(text)
	if skipped {
		p.a.Say("(a part of the output is missing here)")
	}
	return p.print(added)
}

// printRest prints the output that follows the last tail. The round must have ended.
func (p *printout) printRest(tail *tailReader, t *manager.Task) error {
	if p.r.Worker == "" {
		p.a.Say("round %d did not run: task %d is %s", p.round, t.ID, t.State)
	}
	text := p.text()
	if text == "" && p.r.Tail != "" {
		return p.printNew(tail, p.r.Tail)
	}
	at := tail.end(text)
	if at < 0 {
		stderr := ""
		if p.stderr {
			stderr = " --error"
		}
		p.a.Say("the round has ended; its whole output: tdf output %d --round %d%s", t.ID, p.round, stderr)
		return nil
	}
	return p.print(text[at:])
}

// A tailReader reconstructs a growing text from tails. A tail is the end of the text at one time.
type tailReader struct {
	last       string // the last tail
	all        []byte // text so far, if it is complete and not too long
	incomplete bool   // all is empty, because a part of the text is missing or the text is too long
}

// maxKept is the maximum number of bytes that a tailReader keeps.
const maxKept = 4 << 20

// next returns the part of a tail that the previous tail does not contain. Its second result reports whether
// text is missing between the two tails.
func (r *tailReader) next(tail string) (text string, skipped bool) {
	if tail == "" { // no output yet, or the tail was removed
		return "", false
	}
	before := r.last
	r.last = tail
	defer func() { r.keep(text, skipped) }()
	for n := min(len(before), len(tail)); n > 0; n-- {
		if strings.HasSuffix(before, tail[:n]) {
			return tail[n:], false
		}
	}
	return tail, before != ""
}

func (r *tailReader) keep(text string, skipped bool) {
	r.incomplete = r.incomplete || skipped || len(r.all)+len(text) > maxKept
	if r.all = append(r.all, text...); r.incomplete {
		r.all = nil
	}
}

// end returns the position in text at which the last tail ends, or -1 if the position is unknown.
func (r *tailReader) end(text string) int {
	if !r.incomplete && strings.HasPrefix(text, string(r.all)) {
		return len(r.all)
	}
	const enough = 200
	last := r.last[max(0, len(r.last)-enough):]
	if last == "" {
		return 0
	}
	if i := strings.LastIndex(text, last); i >= 0 && i == strings.Index(text, last) {
		return i + len(last)
	}
	return -1
}
