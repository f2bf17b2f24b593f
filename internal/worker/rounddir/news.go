package rounddir

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// A Report is the data that a program has written and that Redis has not accepted yet.
type Report struct {
	Progress    string // a number from 0 to 1, a blank and a text; "" if HasProgress is false
	HasProgress bool
	Checkpoint  []byte // nil means unchanged; empty means deleted

	// Updates are the new lines of the file updates. Each round numbers its lines from 1. FirstUpdate is the number of
	// the first line in Updates. More says that there are more lines for the next report.
	Updates     []string
	FirstUpdate int
	More        bool

	// Problems describe invalid content of the directory, for the log. Each round reports only the first problem of
	// each kind.
	Problems []string

	from, to state
}

// A state says which data was accepted so far.
type state struct {
	generation int // counts accepted reports
	progress   string
	checkpoint digest
	updates    position
}

// News returns the data that is new since the last accepted report. After the end of the program, the caller sets
// final. Then News also returns the last line of updates, even if the line has no line end.
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

// Accepted records that a report was stored, so that its data will not be reported again. Accepted ignores a report
// that was made before the last accepted one.
func (d *Dir) Accepted(r Report) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.from.generation == d.seen.generation {
		d.seen = r.to
	}
}

// problem adds a problem to the report, if it is the first of its kind. That bounds the number of problems: a program
// can cause many different texts, but only a few kinds.
func (d *Dir) problem(r *Report, file, kind string, err error) {
	if d.reported == nil {
		d.reported = map[string]bool{}
	}
	if !d.reported[file+kind] {
		d.reported[file+kind] = true
		r.Problems = append(r.Problems, file+": "+d.secrets.Mask(err.Error()))
	}
}

const (
	progressLine = 1 << 10 // the worker reads at most this many bytes of the file
	progressText = 200     // length of the shown text, in bytes
)

var errProgress = errors.New("its first line must be a number from 0 to 1 and, after a blank, a text")

func (d *Dir) readProgress(r *Report) {
	f, _, err := d.open(ProgressFile)
	if err != nil {
		d.problem(r, ProgressFile, "", err)
	}
	if f == nil {
		return
	}
	defer f.Close()
	b, err := readFull(f, 0, progressLine)
	if err != nil {
		d.problem(r, ProgressFile, "", err)
		return
	}
	line, _, _ := strings.Cut(d.secrets.Mask(string(b)), "\n")
	if strings.TrimSpace(line) == "" { // the program is still writing the file
		return
	}
	progress, ok := ParseProgress(line)
	if !ok {
		d.problem(r, ProgressFile, "content", errProgress)
		return
	}
	if progress != d.seen.progress {
		r.Progress, r.HasProgress, r.to.progress = progress, true, progress
	}
}

// ParseProgress reads a line of the file progress. It returns the number, with up to six decimals, and the text without
// control characters.
func ParseProgress(line string) (string, bool) {
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

// cut shortens a text to at most limit bytes. A shortened text ends with ….
func cut(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len(ellipsis)], "") + ellipsis
}

// A digest identifies the content of a checkpoint. The zero digest means that there is no checkpoint.
type digest [sha256.Size]byte

func sum(b []byte) digest {
	if len(b) == 0 {
		return digest{}
	}
	return sha256.Sum256(b)
}

func (d *Dir) readCheckpoint(r *Report) {
	f, info, err := d.open(CheckpointFile)
	if err != nil {
		d.problem(r, CheckpointFile, "", err)
	}
	if f == nil {
		return
	}
	defer f.Close()
	b, err := readWhole(f, info.Size, d.limits.Checkpoint)
	if err != nil {
		d.problem(r, CheckpointFile, "content", fmt.Errorf("%w; the previous checkpoint stays", err))
		return
	}
	if r.to.checkpoint = sum(b); r.to.checkpoint != d.seen.checkpoint {
		r.Checkpoint = b
	}
}
