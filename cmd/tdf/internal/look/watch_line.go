package look

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/schollz/progressbar/v3"

	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/internal/task"
)

// A piece is a part of the line that tdf watch prints.
type piece struct {
	text string
	need int // rank of importance; 0 is the most important. A narrow terminal shows only the most important pieces
}

// The ranks of the pieces. The lowest rank is the most important. No two pieces have the same rank.
const (
	needFinished = iota
	needLeft
	needPaused
	needRate
	needFailed
	needStates
	needWorkers
	needLater
	needRateSoFar
	needClosed
)

// pieces returns all pieces, in the order in which the line shows them.
func pieces(s *admin.Status) []piece {
	all := []piece{{fmt.Sprintf("%d/%d finished", s.Done(), s.Counts.Total()), needFinished}}
	if s.Counts.Unfinished() > 0 {
		all = append(all, piece{leftText(s.Estimate), needLeft})
	}
	if len(s.Pauses) > 0 {
		all = append(all, piece{pausedText(s), needPaused})
	}
	for _, of := range []struct {
		states []task.State
		need   int
	}{
		{[]task.State{task.Open, task.Running, task.Executed, task.Succeeded, task.Archived}, needStates},
		{[]task.State{task.Failed, task.TimedOut, task.Expired}, needFailed},
	} {
		if text := inStates(s.Counts, of.states); text != "" {
			all = append(all, piece{text, of.need})
		}
	}
	if s.RateSoFar > 0 {
		all = append(all, piece{format.PerSecond(s.Rate) + "/s", needRate},
			piece{format.PerSecond(s.RateSoFar) + "/s so far", needRateSoFar})
	}
	all = append(all, piece{workersText(s), needWorkers})
	if s.Later > 0 {
		all = append(all, piece{fmt.Sprintf("%d start later", s.Later), needLater})
	}
	switch {
	case s.Complete:
		all = append(all, piece{"complete", needClosed})
	case s.Closed:
		all = append(all, piece{"closed", needClosed})
	}
	return all
}

// pausedText names a held program and the time until a task tries it.
func pausedText(s *admin.Status) string {
	p := &s.Pauses[0]
	text := p.Program + " held"
	if p.Until.After(s.At) {
		text += ", next trial in " + format.Span(p.Until.Sub(s.At))
	}
	return text
}

func inStates(counts task.Counts, states []task.State) string {
	var parts []string
	for _, state := range states {
		if n := counts[state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, strings.ReplaceAll(string(state), "_", " ")))
		}
	}
	return strings.Join(parts, ", ")
}

func workersText(s *admin.Status) string {
	text := fmt.Sprintf("%s, %d/%d busy", format.Counted(s.Workers, "worker"), s.Busy, s.Slots)
	if s.Drained > 0 {
		text += fmt.Sprintf(", %d not claiming", s.Drained)
	}
	return text
}

// leftText returns the estimated time left.
func leftText(e admin.Estimate) string {
	if e.Unknown != "" {
		return "time left unknown: " + e.Unknown
	}
	return format.Left(e.Low, e.High)
}

func joined(all []piece) string {
	texts := make([]string, len(all))
	for i, p := range all {
		texts[i] = p.text
	}
	return strings.Join(texts, "; ")
}

// terminalLine returns a line of at most width characters. It contains the most important pieces, and a bar if the
// bar fits.
func terminalLine(s *admin.Status, width int) string {
	line := format.OneLine(joined(fitting(pieces(s), width)), width)
	if b := bar(s, width-utf8.RuneCountInString(line)-1); b != "" {
		return b + " " + line
	}
	return line
}

// fitting returns the most important pieces that fit into a line of the given width. It may shorten the reason for
// a missing estimate.
func fitting(all []piece, width int) []piece {
	const separator, minLeft = len("; "), len("time left unknown")
	room := width + separator
	keep := map[int]string{}
	for _, p := range slices.SortedFunc(slices.Values(all), func(a, b piece) int { return a.need - b.need }) {
		if p.need == needLeft && room-separator > minLeft {
			p.text = format.OneLine(p.text, room-separator)
		}
		if takes := utf8.RuneCountInString(p.text) + separator; takes <= room || p.need == needFinished {
			keep[p.need], room = p.text, room-takes
		}
	}
	var kept []piece
	for _, p := range all {
		if text, fits := keep[p.need]; fits {
			kept = append(kept, piece{text, p.need})
		}
	}
	return kept
}

// Widths of parts of the progress bar on a terminal.
const (
	minBar   = 5  // smallest bar
	maxBar   = 20 // largest bar
	barFrame = len("100% ||")
)

// bar returns a progress bar that fits into the given number of characters, or "" if no bar fits.
func bar(s *admin.Status, room int) string {
	width := min(maxBar, room-barFrame)
	if width < minBar {
		return ""
	}
	b := progressbar.NewOptions64(max(s.Counts.Total(), 1),
		progressbar.OptionSetWriter(io.Discard), progressbar.OptionSetWidth(width),
		progressbar.OptionUseANSICodes(false),
		progressbar.OptionSetPredictTime(false), progressbar.OptionSetElapsedTime(false),
		progressbar.OptionSetRenderBlankState(true),
	)
	_ = b.Set64(s.Done()) // fails only if the value exceeds the total; the bar then shows 100 %
	return strings.TrimSpace(b.String())
}
