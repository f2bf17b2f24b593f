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

// A taskJSON is a task as ls, show and results write it (docs/tdf.md, "JSON"). What is not known, or is as usual,
// is left out.
type taskJSON struct {
	ID         int64           `json:"id"`
	Campaign   string          `json:"campaign,omitempty"`
	Program    string          `json:"program"`
	State      tdf.State       `json:"state"`
	Outcome    string          `json:"outcome,omitempty"`
	Round      int             `json:"round"`
	Entered    string          `json:"entered,omitempty"` // its state
	Opened     string          `json:"opened,omitempty"`
	Input      *content        `json:"input,omitempty"`
	Parameters json.RawMessage `json:"parameters,omitempty"` // meta, where that is a JSON object
	Meta       *content        `json:"meta,omitempty"`       // any other

	Run *int `json:"run,omitempty"` // the round that the rest is about: the last one that ran
	runJSON

	*detailsJSON
}

// A runJSON is what is known of a round.
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

// A textsJSON is what a round printed and left.
type textsJSON struct {
	Result      json.RawMessage `json:"result,omitempty"`
	Output      *content        `json:"output,omitempty"`
	OutputWhole *bool           `json:"output_whole,omitempty"`
	Error       *content        `json:"error,omitempty"`
	ErrorWhole  *bool           `json:"error_whole,omitempty"`
	Tail        *content        `json:"tail,omitempty"`
}

// content is bytes: a string, or {"base64": "…"} where they are no UTF-8.
type content string

func (c *content) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(*c)) {
		return marshal(string(*c))
	}
	return json.Marshal(struct {
		Base64 string `json:"base64"`
	}{base64.StdEncoding.EncodeToString([]byte(*c))})
}

// marshal is json.Marshal without writing < as \u003c.
func marshal(v any) ([]byte, error) {
	var b strings.Builder
	err := jsonLines(&b).Encode(v)
	return []byte(strings.TrimSuffix(b.String(), "\n")), err
}

// jsonLines writes a value a line.
func jsonLines(w io.Writer) *json.Encoder {
	e := json.NewEncoder(harmless{w})
	e.SetEscapeHTML(false)
	return e
}

// harmless writes JSON so that it does nothing to a terminal: the control characters that JSON has as they are
// (U+007F to U+009F) are escaped. They are within strings only.
type harmless struct{ w io.Writer }

func (h harmless) Write(text []byte) (int, error) {
	if !bytes.ContainsAny(text, "\x7f\u0080\u0081\u0082\u0083\u0084\u0085\u0086\u0087\u0088\u0089\u008a\u008b\u008c\u008d\u008e\u008f"+
		"\u0090\u0091\u0092\u0093\u0094\u0095\u0096\u0097\u0098\u0099\u009a\u009b\u009c\u009d\u009e\u009f") {
		return h.w.Write(text)
	}
	var b bytes.Buffer
	for _, r := range string(text) {
		if r >= 0x7f && r <= 0x9f {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	if _, err := h.w.Write(b.Bytes()); err != nil {
		return 0, err
	}
	return len(text), nil
}

// some returns nil for nothing.
func some(text string) *content {
	if text == "" {
		return nil
	}
	c := content(text)
	return &c
}

// taskToJSON tells what ls tells.
func taskToJSON(t *tdf.Task) taskJSON {
	last := t.LastRun()
	j := taskJSON{
		ID: t.ID, Campaign: t.Group, Program: t.Program, State: t.State, Outcome: t.Outcome, Round: t.Round,
		Entered: stamp(t.Current().Entered[t.State]), Opened: stamp(t.Rounds.At(0).Entered[tdf.Open]),
		Input: some(t.Input),
	}
	if parameters, ok := objectOf(t.Meta); ok {
		j.Parameters = parameters
	} else {
		j.Meta = some(t.Meta)
	}
	if t.Rounds.At(last).Worker != "" {
		j.Run = &last
		j.runJSON = runToJSON(t, last)
	}
	return j
}

// objectOf returns text if it is a JSON object.
func objectOf(text string) (json.RawMessage, bool) {
	object := strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "{")
	return json.RawMessage(text), object && utf8.ValidString(text) && json.Valid([]byte(text))
}

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

// textsToJSON adds what a round printed, which has to be loaded.
func textsToJSON(r *tdf.Round) *textsJSON {
	j := &textsJSON{Output: some(r.Output), Error: some(r.Error), Tail: some(r.Tail)}
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

// outputWhole says whether Redis has all that was printed to stdout.
func outputWhole(r *tdf.Round) bool { return int64(len(r.Output)) >= r.OutputBytes }

// errorWhole: an error may be longer than what was printed, by the line that explains it.
func errorWhole(r *tdf.Round) bool { return int64(len(r.Error)) >= r.ErrorBytes }

// started is when a round's program began; 0: it has not.
func started(r *tdf.Round) tdf.Time { return max(r.Started, r.Entered[tdf.Running]) }

// endedAt is when a round was over; 0: it is not.
func endedAt(t *tdf.Task, round int) tdf.Time {
	r := t.Rounds.At(round)
	switch {
	case r.Entered[tdf.Executed] > 0:
		return r.Entered[tdf.Executed]
	case r.TimedOutAt+r.LostAt > 0:
		return max(r.TimedOutAt, r.LostAt)
	case round < t.Round: // it was given back
		return t.Rounds.At(round + 1).Entered[tdf.Open]
	}
	return max(r.Entered[tdf.Failed], r.Entered[tdf.TimedOut], r.Entered[tdf.Expired])
}

// stamp writes a moment in UTC, to the microsecond; "" for none.
func stamp(t tdf.Time) string {
	if t <= 0 || t.Std().IsZero() {
		return ""
	}
	return t.Std().UTC().Format("2006-01-02T15:04:05.000000Z07:00")
}
