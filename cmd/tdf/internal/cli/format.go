package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/tdf-framework/tdf/manager"
)

// Number formats a number for a table.
func Number[N int | int64](n N) string { return strconv.FormatInt(int64(n), 10) }

// Counted formats a number with its noun: "1 task", "2 tasks".
func Counted[N int | int64](n N, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return Number(n) + " " + noun
}

// Span formats a duration for people, rounded to one unit: 98s, 3m, 5h, 4d.
func Span(d time.Duration) string {
	switch s := d.Seconds(); {
	case s < 0:
		return "0s"
	case s < 100:
		return fmt.Sprintf("%.0fs", s)
	case s < 100*60:
		return fmt.Sprintf("%.0fm", s/60)
	case s < 72*3600:
		return fmt.Sprintf("%.0fh", s/3600)
	default:
		return fmt.Sprintf("%.0fd", s/86400)
	}
}

// Seconds formats a run time in seconds, with two decimals below 10 s. It returns "" for 0.
func Seconds(d time.Duration) string {
	switch s := d.Seconds(); {
	case s <= 0:
		return ""
	case s < 10:
		return strconv.FormatFloat(s, 'f', 2, 64)
	default:
		return strconv.FormatFloat(s, 'f', 0, 64)
	}
}

// PerSecond formats a rate with three digits.
func PerSecond(rate float64) string { return fmt.Sprintf("%.3g", rate) }

// Size formats a number of bytes for people: "196 bytes", "1.23 kB".
func Size(bytes int64) string {
	const units = "kMGTPE"
	if bytes < 1000 {
		return Counted(bytes, "byte")
	}
	f, unit := float64(bytes), -1
	for f >= 999.5 {
		f /= 1000
		unit++
	}
	return fmt.Sprintf("%.3g %cB", f, units[unit])
}

// Clock formats a time in the local time zone. It returns "" for the zero time and "never" for [manager.NoEnd].
func Clock(t time.Time) string {
	switch {
	case t.IsZero():
		return ""
	case t.Equal(manager.NoEnd()):
		return "never"
	}
	return t.Local().Format("2006-01-02 15:04:05 MST")
}

// ShellWord quotes s, if necessary, so that a shell reads it as one word.
func ShellWord(s string) string {
	special := func(r rune) bool {
		return !strings.ContainsRune("_-+=./:@%,", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}
	if s != "" && !strings.ContainsFunc(s, special) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func Tasks[N int | int64](n N) string { return Counted(n, "task") }

// StateText returns the state of a task. If the outcome differs from the state, the text contains the outcome, too. It marks
// tasks that wait for others or for a limit.
func StateText(t *manager.Task) string {
	switch {
	case t.Waits:
		return string(t.State) + " (waits for tasks)"
	case t.WaitsForLimit:
		return string(t.State) + " (waits for a limit)"
	}
	if t.Outcome == "" || t.Outcome == string(t.State) {
		return OneLine(string(t.State), 0)
	}
	return OneLine(string(t.State)+" ("+t.Outcome+")", 0)
}

// WatchCommand returns the command that watches a campaign. If campaign is "", the command watches all tasks.
func WatchCommand(campaign string) string {
	switch {
	case campaign == "":
		return "tdf watch"
	case strings.HasPrefix(campaign, "-"):
		return "tdf watch -- " + ShellWord(campaign)
	}
	return "tdf watch " + ShellWord(campaign)
}

// Marshal returns the JSON of a value. Unlike json.Marshal, it does not escape characters for HTML.
func Marshal(v any) ([]byte, error) {
	var b strings.Builder
	err := JsonLines(&b).Encode(v)
	return []byte(strings.TrimSuffix(b.String(), "\n")), err
}

// JsonLines returns an encoder that writes one value per line.
func JsonLines(w io.Writer) *json.Encoder {
	e := json.NewEncoder(controlEscaper{w})
	e.SetEscapeHTML(false)
	return e
}

// controlEscaper escapes unprintable characters in JSON, so that no value controls the terminal or hides a part of a text. The
// JSON encoder has already escaped the ASCII control characters below U+0020.
type controlEscaper struct{ w io.Writer }

func (e controlEscaper) Write(text []byte) (int, error) {
	if !bytes.ContainsFunc(text, escapedInJSON) {
		return e.w.Write(text)
	}
	var b []byte
	for _, r := range string(text) {
		if !escapedInJSON(r) {
			b = utf8.AppendRune(b, r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			b = fmt.Appendf(b, `\u%04x`, unit)
		}
	}
	if _, err := e.w.Write(b); err != nil {
		return 0, err
	}
	return len(text), nil
}

func escapedInJSON(r rune) bool { return r > '~' && unprintable(r) }
