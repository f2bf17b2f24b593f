package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/tdf-framework/tdf/internal/broker"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

// Bounds of a call with reports or renewals.
const (
	mostElements = 1000
	mostBytes    = 4 << 20 // of their texts, unless one element has more; JSON may need six times as much
)

// MaxText is the largest size of each output, of a result and of a checkpoint, in bytes.
const MaxText = 1 << 20

// Renew renews the leases of claims. The API cannot change the deadlines of tasks, so these are left out, and the
// answer has no time.
func (r *Remote) Renew(ctx context.Context, renewals ...redisstate.LeaseRenewal) (redisstate.RenewResult, error) {
	out := redisstate.RenewResult{
		Lost: make([]error, len(renewals)), Followed: make([]bool, len(renewals)),
		Sent: make([]time.Time, len(renewals)),
	}
	for done := 0; done < len(renewals); {
		n := fitting(len(renewals)-done, func(i int) int { return sizeOf(&renewals[done+i].Report) })
		if err := r.renew(ctx, renewals[done:done+n], &out, done); err != nil {
			return out, err
		}
		done += n
	}
	return out, nil
}

func sizeOf(l *redisstate.LiveReport) (n int) {
	if l.Checkpoint != nil {
		n = len(*l.Checkpoint)
	}
	if l.Tail != nil {
		n += len(l.Tail.Text)
	}
	for _, line := range l.Updates {
		n += len(line)
	}
	return n
}

// fitting returns how many of n elements fit into a call.
func fitting(n int, size func(i int) int) (fit int) {
	for bytes := 0; fit < min(n, mostElements); fit++ {
		if bytes += size(fit); bytes > mostBytes && fit > 0 {
			break
		}
	}
	return fit
}

// renew makes a call with the renewals whose answers begin at a place.
func (r *Remote) renew(ctx context.Context, all []redisstate.LeaseRenewal, out *redisstate.RenewResult, at int) error {
	body, places, got := make([]broker.Renewal, len(all)), map[int64]int{}, broker.Renewed{}
	longest := answerTime
	for i := range all {
		body[i], places[all[i].ID] = renewalOf(&all[i]), at+i
		if sizeOf(&all[i].Report) > 0 {
			longest = bulkTime
		}
	}
	call := &request{
		method: http.MethodPost, path: r.session + "/renewals", body: body, answer: &got, longest: longest, several: true,
	}
	if err := r.call(ctx, call); err != nil {
		return err
	}
	for i := range all {
		out.Sent[at+i] = call.sent
	}
	for _, x := range got.Lost {
		if i, known := places[x.ID]; known {
			out.Lost[i] = &lostError{x.ID, x.Detail}
		}
	}
	for _, id := range got.Followed {
		if i, known := places[id]; known {
			out.Followed[i] = true
		}
	}
	return nil
}

// A lostError says that a claim does not hold any more. It wraps a *[rules.StateError].
type lostError struct {
	id     int64
	detail string
}

func (e *lostError) Error() string { return e.detail }

func (e *lostError) Unwrap() error { return &rules.StateError{ID: e.id, Verb: rules.VerbExecute} }

func renewalOf(r *redisstate.LeaseRenewal) broker.Renewal {
	out := broker.Renewal{Run: broker.Run{ID: r.ID, Round: r.Round, Claim: r.Claim}}
	if r.Report.Progress != nil {
		number, text, _ := strings.Cut(*r.Report.Progress, " ")
		fraction, _ := strconv.ParseFloat(number, 64) // the worker has written it
		out.Progress = &task.Progress{Fraction: fraction, Text: text}
	}
	if c := r.Report.Checkpoint; c != nil {
		if out.Checkpoint = c; !utf8.ValidString(*c) {
			out.Checkpoint, out.CheckpointBase64 = nil, []byte(*c)
		}
	}
	if t := r.Report.Tail; t != nil {
		out.Tail = &broker.Tail{Base64: []byte(t.Text), End: t.All, Stdout: t.Stdout, Stderr: t.Stderr}
	}
	first := max(r.Report.FirstUpdate, 1)
	n := max(0, min(len(r.Report.Updates), broker.MostUpdates+1-first)) // the others are left out
	for _, line := range r.Report.Updates[:n] {
		out.Updates = append(out.Updates, oneLine(line))
	}
	if n > 0 {
		out.UpdatesFrom = first
	}
	return out
}

func oneLine(line string) string {
	line = strings.NewReplacer("\n", " ", "\r", " ").Replace(strings.ToValidUTF8(line, "\uFFFD"))
	return broker.Cut(line, broker.LongestUpdate)
}

// report reports how rounds have ended.
func (r *Remote) report(ctx context.Context, all []*broker.Delivery) error {
	return broker.Send(r.send).Deliver(ctx, all)
}

// send sends the first of the reports, as many as fit into a call.
func (r *Remote) send(ctx context.Context, all []*broker.Delivery) ([]redisstate.Outcome, error) {
	all = all[:fitting(len(all), func(i int) int {
		x := &all[i].Result
		return len(x.Output) + len(x.Error) + len(x.JSON) + len(x.Packed) + len(all[i].Following)<<10
	})]
	body := make([]broker.Report, len(all))
	for i, d := range all {
		body[i] = reportOf(d)
	}
	var got struct{ Reports []broker.Reported }
	err := r.call(ctx, &request{
		method: http.MethodPost, path: r.session + "/reports", body: body, answer: &got, longest: bulkTime, several: true,
	})
	if err == nil && len(got.Reports) != len(all) {
		err = fmt.Errorf("the API answered %d reports instead of %d", len(got.Reports), len(all))
	}
	if err != nil {
		return nil, err
	}
	outcomes := make([]redisstate.Outcome, len(all))
	for i, d := range all {
		outcomes[i].Err = take(d, &got.Reports[i])
	}
	return outcomes, nil
}

// take handles the answer to a report.
func take(d *broker.Delivery, got *broker.Reported) error {
	switch {
	case got.ID != d.Task.ID || got.Round != d.Task.Round:
		return errors.New("the API answered the report of another round")
	case !got.Accepted:
		return &lostError{got.ID, got.Detail}
	case got.Detail != "": // the round counts as failed, although the worker gave the task back, or reported a success
		d.Way, d.Result.Refused, d.Result.Reason = broker.Done, true, got.Detail
	}
	return nil
}

func reportOf(d *broker.Delivery) broker.Report {
	out := broker.Report{Run: broker.Run{ID: d.Task.ID, Round: d.Task.Round, Claim: d.Claim}, Action: "fail"}
	switch d.Way {
	case broker.Released:
		out.Action, out.Error = "release", d.Reason
	case broker.Later:
		seconds := float64(d.Delay)
		out.Later, out.Error = &seconds, d.Reason
	case broker.Unfit:
		out.Unfit, out.Error = true, d.Reason
	case broker.TimedOut:
		out.Action = "time_out"
		addTexts(&out, &d.Result, d.Result.Error)
	default:
		addResult(&out, d)
		if out.Unstarted = d.Unstarted; out.Unstarted {
			out.Exit = nil
		}
	}
	out.Error = strings.ToValidUTF8(out.Error, "\uFFFD")
	return out
}

// addResult adds how a round has ended that its worker does not give back.
func addResult(out *broker.Report, d *broker.Delivery) {
	r := &d.Result
	out.Seconds, out.CPUSeconds, out.MaxRSS = float64(r.Seconds), float64(r.CPUSeconds), r.MaxRSS
	exit, err := strconv.Atoi(r.Exit)
	if err == nil {
		out.Exit = &exit
	}
	text := r.Error
	switch failed := r.HasFailed(d.Task.FailOn); {
	case r.Refused, failed && r.Permanent:
		out.Error, out.Permanent = r.Reason, r.Permanent
	case err != nil:
		text = rules.AppendLine(r.Error, r.Reason)
		out.Exit, out.Error = signalExit(r.Exit), fmt.Sprintf("%s ended with %s", r.Subject(), r.Exit)
	default:
		out.Action, text = "complete", rules.AppendLine(r.Error, r.Reason)
		if r.JSON != "" {
			out.Result = json.RawMessage(r.JSON)
		}
		out.Files = []byte(r.Packed)
		for _, b := range r.Made {
			out.Made = append(out.Made, b.String())
		}
		out.FilesKept = strings.ToValidUTF8(r.Files.Kept[:min(len(r.Files.Kept), broker.MaxKept)], "")
		if d.OpensTasks() {
			for i := range d.Following {
				out.Open = append(out.Open, d.Following[i].Definition)
			}
		}
	}
	addTexts(out, r, text)
}

// addTexts adds what the round has printed.
func addTexts(out *broker.Report, r *rules.Result, stderr string) {
	out.Stdout, out.StdoutBase64 = textOrBytes(r.Output)
	out.Stderr, out.StderrBase64 = textOrBytes(stderr)
	if r.OutputBytes > int64(len(r.Output)) {
		out.StdoutBytes = r.OutputBytes
	}
	if r.ErrorBytes > int64(len(r.Error)) {
		out.StderrBytes = r.ErrorBytes
	}
}

// signalExit returns the exit status that a shell reports for a program that was ended by a signal, or nil.
func signalExit(exit string) *int {
	for n := 1; n < 64; n++ {
		if status := 128 + n; exit == "signal: "+syscall.Signal(n).String() {
			return &status
		}
	}
	return nil
}

func textOrBytes(s string) (string, []byte) {
	if utf8.ValidString(s) {
		return s, nil
	}
	return "", []byte(s)
}
