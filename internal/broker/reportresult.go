package broker

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-framework/tdf/internal/bundle"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/worker/record"
	"github.com/tdf-framework/tdf/internal/worker/rounddir"
)

// holds reports whether the task still runs with the claim.
func (x *reportDelivery) holds() bool {
	t := x.Task
	return t != nil && t.State == task.Running && t.Round == x.Round && t.Current().Claim == x.Run.Claim
}

// decide makes the move of a report. If the claim does not hold, there is none.
func (x *reportDelivery) decide(now task.Time) {
	if !x.holds() {
		return
	}
	x.Ending = Ending{
		Claim: x.Run.Claim, Result: x.resultAt(now), Reason: x.reason(), PutOff: x.PutOff, Unstarted: x.Report.Unstarted,
	}
	switch {
	case x.Report.Unfit:
		x.Way = Unfit
	case x.Report.Later != nil:
		x.Way, x.Delay = Later, task.Seconds(*x.Report.Later)
	case x.Action == "release" && x.Report.Unstarted && x.Task.Current().Prefetched:
		x.Way = Unclaimed
	case x.Action == "release":
		x.Way = Released
	case x.Action == "time_out":
		x.timeOut(now)
	}
	x.Following, x.Allowed = Numbered("open, task %d", x.Open), x.checkOpen
	x.read = true
	x.complete(x.closed)
}

// timeOut decides what a time-out means that a worker reports. The clock of the worker may go a little faster than that
// of Redis. If the time of the task itself is over, the server expires it. A worker that reports a time-out too early
// fails the round.
func (x *reportDelivery) timeOut(now task.Time) {
	t := x.Task
	now = now.Add(min(t.Timeout/1000, 60) + 1)
	switch {
	case now >= t.Current().Entered[task.Running].Add(t.Timeout):
		x.Way, x.Ending.Result.Reason, x.Ending.Result.Exit = TimedOut, "", ""
	case now >= t.EndBefore:
		x.Way, x.Ending.Reason = Released, "its end_before is over"
	}
}

func (x *reportDelivery) reason() string {
	if x.Action == "time_out" {
		return "the worker says that the round has timed out, but it had more time"
	}
	_, text := Failure("", x.Error, "the worker gave no reason")
	return text
}

// exit returns the exit status of the round.
func (r *Report) exit() string {
	exit := "0"
	if r.Exit != nil {
		exit = strconv.Itoa(*r.Exit)
	}
	if r.Action != "complete" {
		exit, _ = Failure(exit, "", "")
	}
	return exit
}

// resultAt returns the result of the round, which ends now. So a result that Redis gets in time is in time.
func (x *reportDelivery) resultAt(now task.Time) rules.Result {
	r := rules.Result{
		Permanent: x.Permanent, InProcess: true, CPUSeconds: task.Seconds(x.CPUSeconds), MaxRSS: x.MaxRSS,
		JSON: string(x.Result),
	}
	if r.Exit = x.exit(); x.Report.Unstarted {
		r.Exit = ""
	}
	if x.Action != "complete" {
		r.Reason = x.reason()
	}
	r.Output, r.OutputBytes = shorten(string(x.StdoutBase64)+x.Stdout, x.StdoutBytes)
	r.Error, r.ErrorBytes = shorten(string(x.StderrBase64)+x.Stderr, x.StderrBytes)
	ran := max(now.Sub(x.Task.Rounds.At(x.Round).Entered[task.Running]), task.For(time.Microsecond))
	if r.Seconds = ran; x.Seconds > 0 {
		r.Seconds = min(ran, task.Seconds(x.Seconds))
	}
	r.Started = now.Add(-r.Seconds)
	if err := x.addFiles(&r); err != nil {
		r.Refused, r.Reason = true, fmt.Sprintf("fetch: %v (%s ended with %s)", err, r.Subject(), r.Exit)
	}
	if err := x.checkResult(); err != nil {
		r.JSON, r.Packed, r.Refused = "", "", true
		r.Reason = fmt.Sprintf("result: %v (%s ended with %s)", err, r.Subject(), r.Exit)
	}
	return r
}

// shorten returns an output as Redis stores it, and how many bytes it had: more than the text has, if some are left
// out. had is 0 if the worker has left out none.
func shorten(text string, had int64) (string, int64) {
	n := int64(len(text))
	if n > maxOutput+longestNote {
		text, had = record.Shorten(text, maxOutput), max(had, n)
	}
	if had == 0 {
		return text, 0
	}
	return text, max(had, int64(len(text))+1)
}

// addFiles adds the files of the report to a round that has succeeded. Without them, people would miss the files later.
func (x *reportDelivery) addFiles(r *rules.Result) (err error) {
	files, err := x.addMade(r)
	if err != nil {
		return err
	}
	if r.HasFailed(x.Task.FailOn) {
		return nil
	}
	switch fetches := len(x.Task.Fetch) > 0; {
	case fetches && len(files) > 0 && len(x.Files) == 0:
		return bundle.CheckNames(x.Task.Fetch, files)
	case len(files) > 0:
		return errors.New("the worker has reported files as blobs, and others, or the task asks for none")
	case fetches && x.FilesKept != "":
		r.Files.Kept = x.FilesKept
		return nil
	case fetches && len(x.Files) == 0:
		return errors.New("the worker has reported no files; no file matches, or the worker does not know the property fetch")
	case !fetches && len(x.Files) > 0:
		return errors.New("the worker has reported files, and the task asks for none")
	case !fetches:
		return nil
	}
	r.Files, err = bundle.Check(string(x.Files), x.Task.Fetch, MaxFetch)
	if err != nil {
		return fmt.Errorf("the files of the report: %w", err)
	}
	r.Packed = string(x.Files)
	return nil
}

// addMade adds the blobs of the report, and returns the paths of those that are files.
func (x *reportDelivery) addMade(r *rules.Result) (files []string, err error) {
	if err := task.CheckBlobs("made", x.Made); err != nil {
		return nil, err
	}
	r.Made = task.ParseBlobs(strings.Join(x.Made, ","))
	for _, b := range r.Made {
		if b.Path != "" {
			files = append(files, b.Path)
			r.Files.Count, r.Files.Bytes = r.Files.Count+1, r.Files.Bytes+b.Bytes
		}
	}
	return files, nil
}

func (x *reportDelivery) checkResult() error {
	switch {
	case x.Result == nil:
		return nil
	case len(x.Result) > maxResult:
		return fmt.Errorf("%d bytes, more than %d", len(x.Result), maxResult)
	}
	return rounddir.CheckJSON(x.Result)
}
