package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/schollz/progressbar/v3"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/admin"
	"github.com/tdf-framework/tdf/internal/stdtime"
	"github.com/tdf-framework/tdf/manager"
)

// A piece is a part of the line that watch writes.
type piece struct {
	text string
	need int // what has the lowest is needed most, where there is no room for all
}

// What is needed, from most to least. No two pieces have the same.
const (
	needDone = iota
	needLeft
	needPaused
	needRate
	needFailed
	needStates
	needWorkers
	needLater
	needRateSoFar
)

// pieces are all there are, in the order in which they are shown.
func pieces(s *admin.Status) []piece {
	all := []piece{{fmt.Sprintf("%d/%d done", s.Done(), s.Counts.Total()), needDone}}
	if s.Counts.Unfinished() > 0 {
		all = append(all, piece{left(s.Estimate), needLeft})
	}
	if len(s.Pauses) > 0 {
		all = append(all, piece{pausedText(s), needPaused})
	}
	for _, of := range []struct {
		states []tdf.State
		need   int
	}{
		{[]tdf.State{tdf.Open, tdf.Running, tdf.Executed, tdf.Succeeded, tdf.Archived}, needStates},
		{[]tdf.State{tdf.Failed, tdf.TimedOut, tdf.Expired}, needFailed},
	} {
		if text := inStates(s.Counts, of.states); text != "" {
			all = append(all, piece{text, of.need})
		}
	}
	if s.RateSoFar > 0 {
		all = append(all, piece{rate(s.Rate) + "/s", needRate}, piece{rate(s.RateSoFar) + "/s so far", needRateSoFar})
	}
	all = append(all, piece{workersText(s), needWorkers})
	if s.Later > 0 {
		all = append(all, piece{fmt.Sprintf("%d start later", s.Later), needLater})
	}
	return all
}

// pausedText names the program that most workers pause, and until when.
func pausedText(s *admin.Status) string {
	p := &s.Pauses[0]
	text := fmt.Sprintf("%s paused on %d/%d workers", p.Program, p.Workers, p.Of)
	if p.Until.After(s.At) {
		text += " for " + ago(stdtime.Seconds(p.Until.Sub(s.At)))
	}
	return text
}

func inStates(counts manager.Counts, states []tdf.State) string {
	var parts []string
	for _, state := range states {
		if n := counts[state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, strings.ReplaceAll(string(state), "_", " ")))
		}
	}
	return strings.Join(parts, ", ")
}

func workersText(s *admin.Status) string {
	text := fmt.Sprintf("%s, %d/%d busy", counted(s.Workers, "worker"), s.Busy, s.Slots)
	if s.Drained > 0 {
		text += fmt.Sprintf(", %d not claiming", s.Drained)
	}
	return text
}

func rate(perSecond float64) string { return fmt.Sprintf("%.3g", perSecond) }

// left says when all will be done that may run now.
func left(e admin.Estimate) string {
	low, high := ago(stdtime.Seconds(e.Low)), ago(stdtime.Seconds(e.High))
	switch {
	case e.Unknown != "":
		return "time left unknown: " + e.Unknown
	case low == high:
		return low + " left"
	}
	return low + " to " + high + " left"
}

func joined(all []piece) string {
	texts := make([]string, len(all))
	for i, p := range all {
		texts[i] = p.text
	}
	return strings.Join(texts, "; ")
}

// terminalLine is a line of so many characters at most: what is needed most, and with what room is left a bar.
func terminalLine(s *admin.Status, width int) string {
	line := oneLine(joined(fitting(pieces(s), width)), width)
	if b := bar(s, width-utf8.RuneCountInString(line)-1); b != "" {
		return b + " " + line
	}
	return line
}

// fitting leaves out what there is no room for, of what is needed least first. Why there is no estimate may be cut.
func fitting(all []piece, width int) []piece {
	const between, leastLeft = len("; "), len("time left unknown")
	room := width + between
	keep := map[int]string{}
	for _, p := range slices.SortedFunc(slices.Values(all), func(a, b piece) int { return a.need - b.need }) {
		if p.need == needLeft && room-between > leastLeft {
			p.text = oneLine(p.text, room-between)
		}
		if takes := utf8.RuneCountInString(p.text) + between; takes <= room || p.need == needDone {
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

// Widths of the bar on a terminal, without the percentage and the frame.
const (
	leastBar = 5
	mostBar  = 20
	barFrame = len("100% ||")
)

// bar draws how much is done in so many characters at most; "" where these are too few.
func bar(s *admin.Status, room int) string {
	width := min(mostBar, room-barFrame)
	if width < leastBar {
		return ""
	}
	b := progressbar.NewOptions64(max(s.Counts.Total(), 1),
		progressbar.OptionSetWriter(io.Discard), progressbar.OptionSetWidth(width), progressbar.OptionUseANSICodes(false),
		progressbar.OptionSetPredictTime(false), progressbar.OptionSetElapsedTime(false), progressbar.OptionSetRenderBlankState(true),
	)
	_ = b.Set64(s.Done()) // an error: more than the total, which is drawn as all
	return strings.TrimSpace(b.String())
}
