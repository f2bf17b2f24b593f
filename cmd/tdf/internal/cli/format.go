package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/manager"
)

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

// FailuresCommand returns the command that groups the failures of a campaign. If campaign is "", the command groups
// those of all tasks.
func FailuresCommand(campaign string) string {
	if campaign == "" {
		return "tdf failures"
	}
	return "tdf failures --campaign " + ShellWord(campaign) // without the flag, a campaign 7 would be a task
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

// controlEscaper escapes unprintable characters in JSON, so that no value controls the terminal or hides a part of a
// text. The JSON encoder has already escaped the ASCII control characters below U+0020.
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

func escapedInJSON(r rune) bool { return r > '~' && format.Unprintable(r) }
