package manager

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// The shortest times between two outputs of the progress, and the time over which it averages the rate.
const (
	linePause    = 5 * time.Second        // between plain lines
	rewritePause = 100 * time.Millisecond // between versions of a terminal's line
	rateWindow   = 30 * time.Second
)

// progress shows summaries. On a terminal it rewrites one line, and elsewhere it writes plain lines.
type progress struct {
	w     io.Writer // nil if no progress is shown
	width int       // the width of the terminal; 0 if w is not a terminal
	now   func() time.Time

	shown   string    // the last line, without the rate at its end
	at      time.Time // when the last line was written
	pending Summary   // a summary that came too soon after the last line was written
	late    bool      // whether pending holds a summary
	samples []sample
}

// A sample is the number of done tasks at one time.
type sample struct {
	at   time.Time
	done int64
}

func newProgress(w io.Writer) progress {
	p := progress{w: w, now: time.Now}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.width = 80
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			p.width = width
		}
	}
	return p
}

func (p *progress) show(s Summary) {
	if p.w == nil {
		return
	}
	now := p.now()
	rate := p.rate(now, s.Counts.Finished())
	p.pending, p.late = s, true
	if s.String() == p.shown || now.Sub(p.at) < p.pause() && !s.Done() {
		return
	}
	p.write(now, s, rate)
}

func (p *progress) pause() time.Duration {
	if p.width > 0 {
		return rewritePause
	}
	return linePause
}

func (p *progress) write(now time.Time, s Summary, rate float64) {
	p.shown, p.at, p.late = s.String(), now, false
	line := p.shown
	if rate > 0 {
		line += fmt.Sprintf(" (%.1f/s)", rate)
	}
	if p.width == 0 {
		fmt.Fprintln(p.w, line)
		return
	}
	if len(line) >= p.width {
		line = line[:p.width-1]
	}
	fmt.Fprint(p.w, "\r\x1b[K", line)
}

// end writes the pending summary, if there is one, and ends a terminal's line.
func (p *progress) end() {
	if p.w == nil {
		return
	}
	if p.late && p.pending.String() != p.shown {
		p.write(p.now(), p.pending, 0)
	}
	if p.width > 0 && p.shown != "" {
		fmt.Fprintln(p.w)
	}
}

// rate returns the number of tasks that were done per second, over the last half minute.
func (p *progress) rate(now time.Time, done int64) float64 {
	for len(p.samples) > 1 && now.Sub(p.samples[0].at) > rateWindow {
		p.samples = p.samples[1:]
	}
	if n := len(p.samples); n < 2 || now.Sub(p.samples[n-1].at) >= time.Second {
		p.samples = append(p.samples, sample{now, done})
	}
	first := p.samples[0]
	if took := now.Sub(first.at).Seconds(); took > 0 {
		return float64(done-first.done) / took
	}
	return 0
}
