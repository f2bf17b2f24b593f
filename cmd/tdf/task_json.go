package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/tdf-framework/tdf"
)

// A taskJSON is a task in the JSON of ls, show and results (docs/tdf.md, "JSON"). Unknown values are left out.
type taskJSON struct {
	ID         int64           `json:"id"`
	Campaign   string          `json:"campaign,omitempty"`
	Program    string          `json:"program"`
	State      tdf.State       `json:"state"`
	Outcome    string          `json:"outcome,omitempty"`
	Round      int             `json:"round"`
	Entered    string          `json:"entered,omitempty"` // the time at which it entered its state
	Opened     string          `json:"opened,omitempty"`
	Input      *content        `json:"input,omitempty"`
	Parameters json.RawMessage `json:"parameters,omitempty"` // the meta, if it is a JSON object
	Meta       *content        `json:"meta,omitempty"`       // any other meta

	Run *int `json:"run,omitempty"` // the last round that ran; the fields below are about it
	runJSON

	*detailsJSON
}

// A runJSON has the facts about a round.
type runJSON struct {
	Worker        string        `json:"worker,omitempty"`
	Started       string        `json:"started,omitempty"`
	Ended         string        `json:"ended,omitempty"`
	Exit          string        `json:"exit,omitempty"`
	Seconds       tdf.Seconds   `json:"seconds,omitempty"`
	CPUSeconds    tdf.Seconds   `json:"cpu_seconds,omitempty"`
	MaxRSS        int64         `json:"max_rss,omitempty"`
	OutputBytes   *int64        `json:"output_bytes,omitempty"`
	ErrorBytes    *int64        `json:"error_bytes,omitempty"`
	ProgramSHA256 string        `json:"program_sha256,omitempty"`
	Progress      *progressJSON `json:"progress,omitempty"`

	*textsJSON
}

type progressJSON struct {
	Fraction float64 `json:"fraction"`
	Text     string  `json:"text,omitempty"`
}

// A textsJSON has the texts of a round.
type textsJSON struct {
	Result      json.RawMessage `json:"result,omitempty"`
	Output      *content        `json:"output,omitempty"`
	OutputWhole *bool           `json:"output_whole,omitempty"`
	Error       *content        `json:"error,omitempty"`
	ErrorWhole  *bool           `json:"error_whole,omitempty"`
	Tail        *content        `json:"tail,omitempty"`
}

// content is text in JSON: a string, or {"base64": "…"} if it is not UTF-8.
type content string

func (c *content) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(*c)) {
		return marshal(string(*c))
	}
	return json.Marshal(struct {
		Base64 string `json:"base64"`
	}{base64.StdEncoding.EncodeToString([]byte(*c))})
}

// marshal is json.Marshal without escapes for HTML.
func marshal(v any) ([]byte, error) {
	var b strings.Builder
	err := jsonLines(&b).Encode(v)
	return []byte(strings.TrimSuffix(b.String(), "\n")), err
}

// jsonLines returns an encoder that writes one value per line.
func jsonLines(w io.Writer) *json.Encoder {
	e := json.NewEncoder(controlEscaper{w})
	e.SetEscapeHTML(false)
	return e
}

// controlEscaper escapes U+007F to U+009F in JSON, so that no value controls the terminal. The JSON encoder escapes only the
// other control characters.
type controlEscaper struct{ w io.Writer }

func (e controlEscaper) Write(text []byte) (int, error) {
	if !bytes.ContainsAny(text, "\x7f\u0080\u0081\u0082\u0083\u0084\u0085\u0086\u0087\u0088\u0089\u008a\u008b\u008c\u008d\u008e\u008f"+
		"\u0090\u0091\u0092\u0093\u0094\u0095\u0096\u0097\u0098\u0099\u009a\u009b\u009c\u009d\u009e\u009f") {
		return e.w.Write(text)
	}
	var b bytes.Buffer
	for _, r := range string(text) {
		if r >= 0x7f && r <= 0x9f {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	if _, err := e.w.Write(b.Bytes()); err != nil {
		return 0, err
	}
	return len(text), nil
}

// optional returns nil for "".
func optional(text string) *content {
	if text == "" {
		return nil
	}
	c := content(text)
	return &c
}

// taskToJSON returns the fields of tdf ls --json.
func taskToJSON(t *tdf.Task) taskJSON {
	last := t.LastRun()
	j := taskJSON{
		ID: t.ID, Campaign: t.Group, Program: t.Program, State: t.State, Outcome: t.Outcome, Round: t.Round,
		Entered: stamp(t.Current().Entered[t.State]), Opened: stamp(t.Rounds.At(0).Entered[tdf.Open]),
		Input: optional(t.Input),
	}
	if parameters, ok := objectOf(t.Meta); ok {
		j.Parameters = parameters
	} else {
		j.Meta = optional(t.Meta)
	}
	if t.Rounds.At(last).Worker != "" {
		j.Run = &last
		j.runJSON = runToJSON(t, last)
	}
	return j
}

// objectOf returns text as JSON, and whether it is a JSON object.
func objectOf(text string) (json.RawMessage, bool) {
	object := strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "{")
	return json.RawMessage(text), object && utf8.ValidString(text) && json.Valid([]byte(text))
}

// runToJSON returns the facts about a round.
func runToJSON(t *tdf.Task, round int) runJSON {
	r := t.Rounds.At(round)
	j := runJSON{
		Worker: r.Worker, Started: stamp(started(r)), Ended: stamp(endedAt(t, round)), Exit: r.Exit,
		Seconds: r.Seconds, CPUSeconds: r.CPUSeconds, MaxRSS: r.MaxRSS, ProgramSHA256: r.ProgramSHA256,
	}
	if r.Exit != "" || r.OutputBytes+r.ErrorBytes > 0 { // it ran
		j.OutputBytes, j.ErrorBytes = &r.OutputBytes, &r.ErrorBytes
	}
	if r.Progress != (tdf.Progress{}) {
		j.Progress = &progressJSON{r.Progress.Fraction, r.Progress.Text}
	}
	return j
}

// textsToJSON returns the texts of a round, which must be loaded.
func textsToJSON(r *tdf.Round) *textsJSON {
	j := &textsJSON{Output: optional(r.Output), Error: optional(r.Error), Tail: optional(r.Tail)}
	if json.Valid([]byte(r.Result)) {
		j.Result = json.RawMessage(r.Result)
	}
	if r.Output != "" || r.OutputBytes > 0 {
		j.OutputWhole = ptr(outputWhole(r))
	}
	if r.Error != "" {
		j.ErrorWhole = ptr(errorWhole(r))
	}
	return j
}

func ptr[T any](v T) *T { return &v }

// outputWhole reports whether Redis has the whole stdout of a round.
func outputWhole(r *tdf.Round) bool { return int64(len(r.Output)) >= r.OutputBytes }

// errorWhole reports whether Redis has the whole stderr of a round. TDF may add a line to the stderr.
func errorWhole(r *tdf.Round) bool { return int64(len(r.Error)) >= r.ErrorBytes }

// started returns the time at which a round's program started, or 0.
func started(r *tdf.Round) tdf.Time { return max(r.Started, r.Entered[tdf.Running]) }

// endedAt returns the time at which a round ended, or 0.
func endedAt(t *tdf.Task, round int) tdf.Time {
	r := t.Rounds.At(round)
	switch {
	case r.Entered[tdf.Executed] > 0:
		return r.Entered[tdf.Executed]
	case r.TimedOutAt+r.LostAt > 0:
		return max(r.TimedOutAt, r.LostAt)
	case round < t.Round: // it was released
		return t.Rounds.At(round + 1).Entered[tdf.Open]
	}
	return max(r.Entered[tdf.Failed], r.Entered[tdf.TimedOut], r.Entered[tdf.Expired])
}
