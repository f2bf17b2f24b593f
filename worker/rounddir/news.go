package rounddir

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// A Report is what a program says that was not yet accepted.
type Report struct {
	Progress    string // a number from 0 to 1, and after a blank a text; only where HasProgress
	HasProgress bool
	Checkpoint  []byte // nil: unchanged; empty: the program wants none any more

	// Updates are lines, of which the first is the FirstUpdate-th of the round, from 1. More: there
	// are more of them than one report takes; the next one has them when this is accepted.
	Updates     []string
	FirstUpdate int
	More        bool

	// Problems are for the log: what of the directory's content is not as it should be. The first
	// one of each kind is told, once in a round.
	Problems []string

	from, to state
}

// state is what was accepted so far.
type state struct {
	generation int // counts the reports that were accepted
	progress   string
	stamp      stamp // of the checkpoint
	checkpoint digest
	updates    position
}

// News returns what is new since the last report that was accepted. final: the program has ended,
// so that the last line of updates counts even where it has no end.
func (d *Dir) News(final bool) Report {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := Report{from: d.seen, to: d.seen, FirstUpdate: d.seen.updates.lines + 1}
	r.to.generation++
	d.readProgress(&r)
	d.readCheckpoint(&r)
	d.readUpdates(&r, final)
	return r
}

// Accepted says that a report was stored: what is in it does not come again. A report from
// before another one that was accepted changes nothing.
func (d *Dir) Accepted(r Report) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.from.generation == d.seen.generation {
		d.seen = r.to
	}
}

// problem tells what is wrong with a file, if nothing of that kind was told before. There are few
// kinds, however many texts a program thinks of.
func (d *Dir) problem(r *Report, file, kind string, err error) {
	if !d.told[file+kind] {
		d.told[file+kind] = true
		r.Problems = append(r.Problems, file+": "+d.secrets.Mask(err.Error()))
	}
}

const (
	progressLine = 1 << 10 // how much of progress is looked at, in bytes
	progressText = 200     // how much of its text is shown
)

var errProgress = errors.New("its first line must be a number from 0 to 1 and, after a blank, a text")

func (d *Dir) readProgress(r *Report) {
	f, _, err := d.open(progressFile)
	if err != nil {
		d.problem(r, progressFile, "", err)
	}
	if f == nil {
		return
	}
	defer f.Close()
	b, err := readFull(f, 0, progressLine+int64(d.secrets.Longest()))
	if err != nil {
		d.problem(r, progressFile, "", err)
		return
	}
	line, _, _ := bytes.Cut(b, []byte("\n"))
	line = d.secrets.MaskPart(line, 0, min(len(line), progressLine))
	if len(bytes.TrimSpace(line)) == 0 { // the program is about to write it
		return
	}
	progress, ok := parseProgress(string(line))
	if !ok {
		d.problem(r, progressFile, "content", errProgress)
		return
	}
	if progress != d.seen.progress {
		r.Progress, r.HasProgress, r.to.progress = progress, true, progress
	}
}

// parseProgress returns the number, to six decimals, and the text with what must not be in it
// replaced.
func parseProgress(line string) (string, bool) {
	number, text, _ := strings.Cut(strings.TrimSpace(strings.Map(blank, line)), " ")
	fraction, err := strconv.ParseFloat(number, 64)
	if err != nil || !(fraction >= 0 && fraction <= 1) {
		return "", false
	}
	fraction = math.Abs(math.Round(fraction*1e6) / 1e6)
	text = cut(strings.TrimSpace(text), progressText)
	return strings.TrimSpace(strconv.FormatFloat(fraction, 'f', -1, 64) + " " + text), true
}

func blank(r rune) rune {
	if unicode.IsControl(r) {
		return ' '
	}
	return r
}

const ellipsis = "…"

// cut returns at most so many bytes of a text, which it ends with … where there are more.
func cut(text string, most int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len(ellipsis)], "") + ellipsis
}
