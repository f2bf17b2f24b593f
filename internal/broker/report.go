package broker

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/pool"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
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

	longestDelay = task.Seconds(100 * 365 * 24 * 60 * 60)
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
	Action string `json:"action" enum:"complete,fail,release,time_out" doc:"complete: the program has ended; fail: the round has failed; release: the task is given back, and no failure is counted; time_out: the round has run for as long as its task may, and counts as timed out"`

	Exit         *int            `json:"exit,omitempty" doc:"the exit status; missing: 0 for complete, and 1 for fail"`
	Stdout       string          `json:"stdout,omitempty"`
	StdoutBase64 []byte          `json:"stdout_base64,omitempty" doc:"instead of stdout"`
	Stderr       string          `json:"stderr,omitempty" doc:"text here is a failure, unless the task's fail_on is exit"`
	StderrBase64 []byte          `json:"stderr_base64,omitempty" doc:"instead of stderr"`
	StdoutBytes  int64           `json:"stdout_bytes,omitempty" doc:"how many bytes stdout had, if some of them are left out"`
	StderrBytes  int64           `json:"stderr_bytes,omitempty" doc:"the same of stderr"`
	Result       json.RawMessage `json:"result,omitempty" doc:"the result of the round, up to 1 MiB of JSON"`

	Made []string `json:"made,omitempty" doc:"the blobs that the round has made, as SHA256:BYTES, or as SHA256:BYTES:PATH instead of a file in files"`

	Files []byte `json:"files,omitempty" doc:"the files that match the task's fetch, up to 24 MiB, as tar.gz in base64"`

	FilesKept string `json:"files_kept,omitempty" doc:"instead of files: why they stay on the worker, and where; at most 4 KiB"`

	Error     string   `json:"error,omitempty" doc:"for fail and release: why"`
	Permanent bool     `json:"permanent,omitempty" doc:"for fail: the task fails for good"`
	Later     *float64 `json:"later,omitempty" doc:"for fail: the task is released, and runs again after this number of seconds"`
	Unfit     bool     `json:"unfit,omitempty" doc:"for fail: the task is released, because this worker cannot run it, but another one may"`

	Unstarted bool `json:"unstarted,omitempty" doc:"for fail: no worker could have started the program; after several such failures, tasks of the program are held. For release: the task was prefetched, and has not started"`

	Seconds    float64 `json:"seconds,omitempty" doc:"how long the round ran; missing: since the claim"`
	CPUSeconds float64 `json:"cpu_seconds,omitempty"`
	MaxRSS     int64   `json:"max_rss,omitempty" doc:"bytes"`

	Open []task.Definition `json:"open,omitempty" doc:"for complete: tasks to open in the same step in which the result is accepted, if the round succeeds"`
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
	finite := func(x float64) bool { return x >= 0 && task.Seconds(x) <= longestDelay }
	fails, timedOut := r.Action == "fail", r.Action == "time_out"
	kinds := 0
	for _, given := range []bool{r.Permanent, r.Later != nil, r.Unfit} {
		if given {
			kinds++
		}
	}
	switch {
	case r.Action != "complete" && r.Action != "release" && !fails && !timedOut:
		return invalid("action %.50q: want complete, fail, release or time_out", r.Action)
	case r.Exit != nil && (*r.Exit < 0 || *r.Exit > 255):
		return invalid("exit: want 0 to 255")
	case r.Stdout != "" && r.StdoutBase64 != nil || r.Stderr != "" && r.StderrBase64 != nil:
		return invalid("want a text either as it is or in base64")
	case kinds > 0 && !fails || r.Unstarted && !fails && r.Action != "release":
		return invalid("permanent, later and unfit are only for fail, and unstarted only for fail and release")
	case kinds > 1:
		return invalid("want at most one of permanent, later and unfit")
	case r.Later != nil && !finite(*r.Later):
		return invalid("later: want seconds from 0 up")
	case !finite(r.Seconds) || !finite(r.CPUSeconds) || min(r.MaxRSS, r.StdoutBytes, r.StderrBytes) < 0:
		return invalid("seconds, cpu_seconds, max_rss, stdout_bytes and stderr_bytes must be at least 0")
	case len(r.Made) > 0 && r.Action == "release":
		return invalid("made is only for complete and fail")
	case r.FilesKept != "" && len(r.Files) > 0 || len(r.FilesKept) > MaxKept:
		return invalid("want either files or files_kept, and at most %d bytes of it", MaxKept)
	case len(r.Open) > 0 && r.Action != "complete":
		return invalid("open is only for complete")
	case r.Error != "" && (r.Action == "complete" || timedOut):
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
		case r.ID < 1 || r.Round < 0 || r.Round > task.MaxRound:
			return invalid("element %d: want an id from 1 up, and a round from 0 to %d", i+1, task.MaxRound)
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
	b.endWait(t, id, nil)
	return answers, b.answerAgain(ctx, slices.Concat(over, late, later))
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
	if task.CodeOf(err) == task.CodeFull {
		x.closed, err = err, nil
	}
	return err
}
