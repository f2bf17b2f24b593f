package broker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/access"
	"github.com/tdf-framework/tdf/internal/bundle"
	"github.com/tdf-framework/tdf/internal/pool"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/worker/record"
	"github.com/tdf-framework/tdf/worker/rounddir"
)

// Bounds of a report: max_output, and the bound of results, of other workers.
const (
	mostReports = 10_000
	maxOutput   = 1 << 20
	maxResult   = 1 << 20

	longestNote = 8 << 10 // the line of a worker that has shortened an output, with the path of the whole one

	// MaxFetch is how many bytes the files of a report may have, unpacked. In base64, and with the longest texts, they fit
	// into a body.
	MaxFetch = 24 << 20
	// MaxKept is how many bytes a report may say about files that stay on the worker.
	MaxKept = 4 << 10

	mostExplained = 4 << 20 // bytes of errors that one call reads

	longestDelay = tdf.Seconds(100 * 365 * 24 * 60 * 60)
)

// A Run names a run of a task.
type Run struct {
	ID    int64  `json:"id"`
	Round int    `json:"round"`
	Claim string `json:"claim"`
}

// A Report says how a round has ended.
type Report struct {
	Run
	Action string `json:"action" enum:"complete,fail,release" doc:"complete: the program has ended; fail: the round has failed; release: the task is given back, and no failure is counted"`

	Exit         *int            `json:"exit,omitempty" doc:"the exit status; missing: 0 for complete, and 1 for fail"`
	Stdout       string          `json:"stdout,omitempty"`
	StdoutBase64 []byte          `json:"stdout_base64,omitempty" doc:"instead of stdout"`
	Stderr       string          `json:"stderr,omitempty" doc:"text here is a failure, unless the task's fail_on is exit"`
	StderrBase64 []byte          `json:"stderr_base64,omitempty" doc:"instead of stderr"`
	StdoutBytes  int64           `json:"stdout_bytes,omitempty" doc:"how many bytes stdout had, if some of them are left out"`
	StderrBytes  int64           `json:"stderr_bytes,omitempty" doc:"the same of stderr"`
	Result       json.RawMessage `json:"result,omitempty" doc:"the result of the round, up to 1 MiB of JSON"`

	Files []byte `json:"files,omitempty" doc:"the files that match the task's fetch, up to 24 MiB, as tar.gz in base64"`

	FilesKept string `json:"files_kept,omitempty" doc:"instead of files: why they stay on the worker, and where; at most 4 KiB"`

	Error     string   `json:"error,omitempty" doc:"for fail and release: why"`
	Permanent bool     `json:"permanent,omitempty" doc:"for fail: the task fails for good"`
	Later     *float64 `json:"later,omitempty" doc:"for fail: the task is released, and runs again after this number of seconds"`
	Unfit     bool     `json:"unfit,omitempty" doc:"for fail: the task is released, because this worker cannot run it, but another one may"`

	Unstarted bool `json:"unstarted,omitempty" doc:"for fail: no worker could have started the program; after several such failures, tasks of the program are held"`

	Seconds    float64 `json:"seconds,omitempty" doc:"how long the round ran; missing: since the claim"`
	CPUSeconds float64 `json:"cpu_seconds,omitempty"`
	MaxRSS     int64   `json:"max_rss,omitempty" doc:"bytes"`

	Open []tdf.Definition `json:"open,omitempty" doc:"for complete: tasks to open in the same step in which the result is accepted, if the round succeeds"`
}

// A Reported is the answer to a report. A repeated report is accepted if the first one was.
type Reported struct {
	ID       int64  `json:"id"`
	Round    int    `json:"round"`
	Accepted bool   `json:"accepted" doc:"false: the task no longer belongs to the worker, which must drop the round"`
	Code     string `json:"code,omitempty"`
	Detail   string `json:"detail,omitempty" doc:"why the report is not accepted, or why the round counts as failed"`
}

func (r *Report) check() error {
	finite := func(x float64) bool { return x >= 0 && tdf.Seconds(x) <= longestDelay }
	fails := r.Action == "fail"
	kinds := 0
	for _, given := range []bool{r.Permanent, r.Later != nil, r.Unfit} {
		if given {
			kinds++
		}
	}
	switch {
	case r.Action != "complete" && r.Action != "release" && !fails:
		return invalid("action %.50q: want complete, fail or release", r.Action)
	case r.Exit != nil && (*r.Exit < 0 || *r.Exit > 255):
		return invalid("exit: want 0 to 255")
	case r.Stdout != "" && r.StdoutBase64 != nil || r.Stderr != "" && r.StderrBase64 != nil:
		return invalid("want a text either as it is or in base64")
	case (kinds > 0 || r.Unstarted) && !fails:
		return invalid("permanent, later, unfit and unstarted are only for fail")
	case kinds > 1:
		return invalid("want at most one of permanent, later and unfit")
	case r.Later != nil && !finite(*r.Later):
		return invalid("later: want seconds from 0 up")
	case !finite(r.Seconds) || !finite(r.CPUSeconds) || min(r.MaxRSS, r.StdoutBytes, r.StderrBytes) < 0:
		return invalid("seconds, cpu_seconds, max_rss, stdout_bytes and stderr_bytes must be at least 0")
	case r.FilesKept != "" && len(r.Files) > 0 || len(r.FilesKept) > MaxKept:
		return invalid("want either files or files_kept, and at most %d bytes of it", MaxKept)
	case len(r.Open) > 0 && r.Action != "complete":
		return invalid("open is only for complete")
	case r.Error != "" && r.Action == "complete":
		return invalid("error is only for fail and release")
	}
	return nil
}

// checkRuns returns an error if there are too many runs, if one of them occurs twice, or if a claim is not one of the
// session.
func (s workerSession) checkRuns(most int, runs []Run) error {
	if len(runs) == 0 || len(runs) > most {
		return invalid("want 1 to %d elements", most)
	}
	seen := map[int64]bool{}
	for i, r := range runs {
		switch {
		case !s.owns(r.Claim):
			return fmt.Errorf("element %d: %w", i+1, errNotOwn)
		case r.ID < 1 || r.Round < 0 || r.Round > tdf.MaxRound:
			return invalid("element %d: want an id from 1 up, and a round from 0 to %d", i+1, tdf.MaxRound)
		case seen[r.ID]:
			return invalid("element %d: task %d occurs twice", i+1, r.ID)
		}
		seen[r.ID] = true
	}
	return nil
}

// A reportDelivery is a Report on its way to Redis.
type reportDelivery struct {
	*Report
	Delivery
	token     *access.Token
	campaigns map[int64]campaign // of the tasks for which new tasks of reports wait
	closed    error              // why rounds may open no tasks, or nil
	answer    *Reported
}

// Report stores how rounds have ended. Each report succeeds or fails on its own. A report may come twice, also while
// the first one is on its way.
func (b *Broker) Report(ctx context.Context, t *access.Token, id string, reports []Report) ([]Reported, error) {
	s, err := parseSession(t, id)
	if err != nil {
		return nil, err
	}
	runs := make([]Run, len(reports))
	for i := range reports {
		if err := reports[i].check(); err != nil {
			return nil, fmt.Errorf("element %d: %w", i+1, err)
		}
		runs[i] = reports[i].Run
	}
	if err := s.checkRuns(mostReports, runs); err != nil {
		return nil, err
	}
	w := newWitness(ctx, b.store, s.worker)
	all, err := b.deliveries(ctx, t, w, reports)
	if err != nil {
		return nil, err
	}
	answers := make([]Reported, len(reports))
	var over, results, others []*reportDelivery
	for i := range all {
		x := &all[i]
		x.answer = &answers[i]
		*x.answer = Reported{ID: x.ID, Round: x.Round}
		switch {
		case x.move.Verb == "":
			over = append(over, x)
		case x.move.HasResult() && len(x.open) == 0:
			results = append(results, x)
		default:
			others = append(others, x)
		}
	}
	late, err := deliverTo(ctx, reporting(b.store, s.worker), results)
	if err != nil {
		return nil, err
	}
	later, err := deliverTo(ctx, applying(b.store, s.worker), others)
	if err != nil {
		return nil, err
	}
	var reported []*Delivery
	for _, x := range slices.Concat(results, others) {
		reported = append(reported, &x.Delivery)
	}
	noteFailures(ctx, w, reported...)
	return answers, b.readAgain(ctx, slices.Concat(over, late, later))
}

// deliveries reads of the tasks what the reports need, and decides what the reports mean for them.
func (b *Broker) deliveries(ctx context.Context, t *access.Token, w *witness, reports []Report) ([]reportDelivery,
	error,
) {
	ids := make([]int64, len(reports))
	for i := range reports {
		ids[i] = reports[i].ID
	}
	now, err := b.store.Now(ctx)
	if err != nil {
		return nil, err
	}
	want := redisstate.Want{Fields: redisstate.Result}
	if slices.ContainsFunc(reports, func(r Report) bool { return r.Action != "complete" || len(r.Open) > 0 }) {
		want = redisstate.Want{Fields: redisstate.Facts | redisstate.Rules, Rounds: redisstate.LastRounds(1)}
	}
	stored, err := b.store.Read(ctx, ids, want)
	if err != nil {
		return nil, err
	}
	campaigns, closed, err := b.forOpening(ctx, reports)
	if err != nil {
		return nil, err
	}
	all := make([]reportDelivery, len(reports))
	for i := range reports {
		if err := pool.Take(ctx, 0); err != nil { // files need long
			return nil, err
		}
		all[i] = reportDelivery{Report: &reports[i], token: t, campaigns: campaigns, closed: closed}
		all[i].Task = stored[i].Task
		if err := all[i].checkShare(ctx, b.store); err != nil {
			return nil, err
		}
		if all[i].Report.Unfit && all[i].holds() {
			all[i].seeUnfit(ctx, w)
		}
		all[i].decide(now)
	}
	return all, nil
}

// checkShare refuses new tasks if the owner of the task, who is that of the new tasks, has its share of Redis's memory.
func (x *reportDelivery) checkShare(ctx context.Context, s store) error {
	if x.closed != nil || len(x.Open) == 0 || !x.holds() {
		return nil
	}
	err := s.CheckShare(ctx, x.Task.Owner)
	if tdf.CodeOf(err) == tdf.CodeFull {
		x.closed, err = err, nil
	}
	return err
}

// holds reports whether the task still runs with the claim.
func (x *reportDelivery) holds() bool {
	t := x.Task
	return t != nil && t.State == tdf.Running && t.Round == x.Round && t.Current().Claim == x.Run.Claim
}

// decide makes the move of a report. If the claim does not hold, there is none.
func (x *reportDelivery) decide(now tdf.Time) {
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
		x.Way, x.Delay = Later, tdf.Seconds(*x.Report.Later)
	case x.Action == "release":
		x.Way = Released
	}
	x.Following, x.Allowed = Numbered("open, task %d", x.Open), x.checkOpen
	x.read = true
	x.complete(x.closed)
}

func (x *reportDelivery) reason() string {
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
func (x *reportDelivery) resultAt(now tdf.Time) tdf.Result {
	r := tdf.Result{
		Permanent: x.Permanent, InProcess: true, CPUSeconds: tdf.Seconds(x.CPUSeconds), MaxRSS: x.MaxRSS,
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
	ran := max(now.Sub(x.Task.Rounds.At(x.Round).Entered[tdf.Running]), tdf.For(time.Microsecond))
	if r.Seconds = ran; x.Seconds > 0 {
		r.Seconds = min(ran, tdf.Seconds(x.Seconds))
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
func (x *reportDelivery) addFiles(r *tdf.Result) (err error) {
	if r.HasFailed(x.Task.FailOn) {
		return nil
	}
	switch fetches := len(x.Task.Fetch) > 0; {
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
	files, err := bundle.Check(string(x.Files), x.Task.Fetch, MaxFetch)
	if err != nil {
		return fmt.Errorf("the files of the report: %w", err)
	}
	r.Packed, r.Files = string(x.Files), files
	return nil
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

// answerAgain answers reports whose claims do not hold: the tasks are lost, or an earlier copy of the report was
// accepted.
func (b *Broker) answerAgain(ctx context.Context, over []*reportDelivery) error {
	byRound := map[int][]*reportDelivery{}
	var refused []*reportDelivery
	for _, x := range over {
		switch {
		case x.Task == nil:
			x.refuse(&tdf.StateError{ID: x.ID, Verb: tdf.VerbExecute})
		case x.Task.Round == x.Round:
			refused = x.answerFrom(x.Task, refused)
		default:
			byRound[x.Round] = append(byRound[x.Round], x)
		}
	}
	for round, all := range byRound {
		stored, err := b.read(ctx, all, redisstate.Want{Fields: redisstate.Facts, Rounds: redisstate.OneRound(round)})
		if err != nil {
			return err
		}
		for i, x := range all {
			if x.refuse(&tdf.StateError{ID: x.ID, Verb: tdf.VerbExecute}); stored[i].Task != nil {
				refused = x.answerFrom(stored[i].Task, refused)
			}
		}
	}
	return b.explain(ctx, refused)
}

// answerFrom answers a report whose claim does not hold, from the round of the claim. It accepts the copy of a report
// that was accepted, and refuses one that says something else. If the round was refused, it adds the report to the
// list.
func (x *reportDelivery) answerFrom(t *tdf.Task, refused []*reportDelivery) []*reportDelivery {
	r := t.Rounds.At(x.Round)
	executed := r.Entered[tdf.Executed] > 0 && x.Agrees(r)
	released := t.Round > x.Round && r.Entered[tdf.Executed] == 0 && r.TimedOutAt == 0 && r.LostAt == 0
	gives := x.Action == "release" || x.Later != nil || x.Unfit
	switch {
	case r.Claim != x.Run.Claim: // another worker's task, of which the answer says nothing
		x.refuse(&tdf.StateError{ID: x.ID, Verb: tdf.VerbExecute})
		return refused
	case !executed && !(released && gives):
		x.refuse(&tdf.StateError{ID: x.ID, Verb: tdf.VerbExecute, State: t.State, Round: t.Round})
		return refused
	case executed && r.Exit == "":
		refused = append(refused, x)
	}
	x.answer.Accepted, x.answer.Code, x.answer.Detail = true, "", ""
	return refused
}

// Agrees reports whether an executed round may have ended as the report says. If the report was refused, for example
// because of its result, the round has no exit status (docs/lifecycle.md, "What makes a round fail"), and agrees with
// every report.
func (r *Report) Agrees(executed *tdf.Round) bool {
	return executed.Exit == "" || executed.Exit == r.exit()
}

// explain answers copies of reports that were refused: their rounds count as failed. It says why, as the first answer
// did, with the last line of the round's error.
func (b *Broker) explain(ctx context.Context, refused []*reportDelivery) error {
	rounds := map[int64]int{}
	for _, x := range refused {
		rounds[x.ID] = x.Round
	}
	errorOf := func(t *tdf.Task) []redisstate.TextsOf {
		return []redisstate.TextsOf{{Round: rounds[t.ID], Texts: tdf.TextError}}
	}
	for len(refused) > 0 {
		stored, err := b.read(ctx, refused, redisstate.Want{Texts: errorOf, MaxBytes: mostExplained})
		if err != nil {
			return err
		}
		for i, s := range stored {
			x := refused[i]
			x.answer.Detail = "the round counts as failed"
			if s.Task != nil {
				text := strings.TrimRight(s.Task.Rounds.At(x.Round).Error, "\n")
				x.answer.Detail = cmp.Or(Short(text[strings.LastIndexByte(text, '\n')+1:]), x.answer.Detail)
			}
		}
		refused = refused[len(stored):]
	}
	return nil
}

func (x *reportDelivery) refuse(err error) {
	x.answer.Accepted, x.answer.Code, x.answer.Detail = false, string(tdf.CodeOf(err)), err.Error()
}

func (x *reportDelivery) accept() {
	x.answer.Accepted = true
	if x.move.HasResult() && x.Delivery.Result.Refused {
		x.answer.Detail = Short(x.Delivery.Result.Reason)
	}
}

// errFull is the error of a report for whose new tasks Redis has no memory. Its code lets workers repeat the report.
var errFull = tdf.NewError(tdf.CodeUnavailable, "redis is full (maxmemory is reached); the same call may succeed later")

// deliverTo sends reports, and answers them. It returns those whose tasks do not run with the claim any more: perhaps
// another copy of the report was faster.
func deliverTo(ctx context.Context, send Send, all []*reportDelivery) (late []*reportDelivery, err error) {
	reports := make([]*Delivery, len(all))
	for i, x := range all {
		reports[i] = &x.Delivery
	}
	err = send.Deliver(ctx, reports)
	if errors.Is(err, conn.ErrFull) {
		err = errFull
	}
	if err != nil {
		return nil, err
	}
	for _, x := range all {
		if x.Err == nil {
			x.accept()
		} else {
			late = append(late, x)
		}
	}
	return late, nil
}

// readAgain reads the present facts of tasks, and answers their reports, whose claims do not hold.
func (b *Broker) readAgain(ctx context.Context, over []*reportDelivery) error {
	if len(over) == 0 {
		return nil
	}
	stored, err := b.read(ctx, over, redisstate.Want{Fields: redisstate.Facts, Rounds: redisstate.LastRounds(1)})
	if err != nil {
		return err
	}
	for i, x := range over {
		x.Task = stored[i].Task
	}
	return b.answerAgain(ctx, over)
}

// read reads the tasks of reports.
func (b *Broker) read(ctx context.Context, all []*reportDelivery, want redisstate.Want) ([]redisstate.Stored, error) {
	ids := make([]int64, len(all))
	for i, x := range all {
		ids[i] = x.ID
	}
	return b.store.Read(ctx, ids, want)
}
