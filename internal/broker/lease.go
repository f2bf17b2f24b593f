package broker

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/worker/rounddir"
	"github.com/tdf-framework/tdf/redisstate"
)

// Bounds of renewals. Together, the updates of a round have at most 1 MiB, as those of other workers by default.
const (
	mostRenewals  = 10_000
	MostUpdates   = 1000 // of a round
	LongestUpdate = 1 << 10
	maxCheckpoint = 1 << 20
	longestTail   = 4 << 10 // bytes
)

// A Renewal renews the lease of a claim, and says how the round gets on.
type Renewal struct {
	Run
	Progress *task.Progress `json:"progress,omitempty"`

	Checkpoint       *string `json:"checkpoint,omitempty" doc:"data for the next round, up to 1 MiB; an empty text removes it"`
	CheckpointBase64 []byte  `json:"checkpoint_base64,omitempty" doc:"instead of checkpoint"`

	Tail *Tail `json:"tail,omitempty" doc:"the last output of the program, for people who watch the task; only if it is new"`

	Updates     []string `json:"updates,omitempty" doc:"lines for people who watch the task, of up to 1 KiB; up to 1,000 in a round"`
	UpdatesFrom int      `json:"updates_from,omitempty" doc:"the number of the first of these lines in the round, from 1; lines that were sent before are not added again"`
}

// A Tail is the end of what a program has printed so far. All counts are of bytes.
type Tail struct {
	Base64 []byte `json:"base64" doc:"the last output to stdout and stderr together, up to 4 KiB, in base64"`
	End    int64  `json:"end" doc:"how much the program has printed to both so far"`
	Stdout int64  `json:"stdout" doc:"how much of it is the beginning of the stdout of the report; -1 if the report will not have this beginning"`
	Stderr int64  `json:"stderr" doc:"the same for stderr"`
}

func (t *Tail) check() error {
	switch {
	case len(t.Base64) > longestTail || t.End < int64(len(t.Base64)):
		return invalid("tail: want at most %d bytes, and an end that counts them", longestTail)
	case t.Stdout < -1 || t.Stderr < -1:
		return invalid("tail: want counts of bytes in stdout and stderr, or -1")
	}
	return nil
}

// A Renewed is the answer to renewals.
type Renewed struct {
	Lease    float64 `json:"lease" doc:"seconds for which the claims hold now"`
	Lost     []Lost  `json:"lost" doc:"the claims that the worker has lost: it must end these rounds, and drop them"`
	Followed []int64 `json:"followed,omitempty" doc:"the ids of tasks that a person watches; report more often"`
	Drained  string  `json:"drained,omitempty" doc:"who has drained the worker; it gets no tasks until it is resumed"`
}

// notHeld says nothing about the task, because the claim may never have been one of it.
const notHeld = "the claim does not hold: the task has ended, was taken away, or is not there"

// Lost is a claim that does not hold any more.
type Lost struct {
	ID     int64  `json:"id"`
	Round  int    `json:"round"`
	Detail string `json:"detail"`
}

// Renew renews the leases of claims. It counts as a heartbeat.
func (b *Broker) Renew(ctx context.Context, t *access.Token, id string, all []Renewal) (Renewed, error) {
	out := Renewed{Lost: []Lost{}}
	s, err := parseSession(t, id)
	if err != nil {
		return out, err
	}
	runs, sent := make([]Run, len(all)), make([]redisstate.LeaseRenewal, len(all))
	for i := range all {
		runs[i] = all[i].Run
		if sent[i], err = all[i].renewal(); err != nil {
			return out, fmt.Errorf("element %d: %w", i+1, err)
		}
	}
	if err := s.checkRuns(mostRenewals, runs); err != nil {
		return out, err
	}
	v, err := b.visit(ctx, t, id)
	if err == nil {
		err = b.beatIfDue(ctx, &v)
	}
	if err != nil {
		return out, err
	}
	renewed, err := b.store.Renew(ctx, v.Lease, sent...)
	if err != nil {
		return out, err
	}
	out.Lease, out.Drained = float64(v.Lease), v.Drained
	for i, lost := range renewed.Lost {
		if lost != nil {
			out.Lost = append(out.Lost, Lost{all[i].ID, all[i].Round, notHeld})
		}
		if renewed.Followed[i] {
			out.Followed = append(out.Followed, all[i].ID)
		}
	}
	return out, nil
}

func (r *Renewal) renewal() (redisstate.LeaseRenewal, error) {
	out := redisstate.LeaseRenewal{ID: r.ID, Round: r.Round, Claim: r.Claim}
	if p := r.Progress; p != nil {
		text, ok := rounddir.ParseProgress(fmt.Sprintf("%.6f %s", p.Fraction, p.Text))
		if !ok {
			return out, invalid("progress: want a fraction from 0 to 1")
		}
		out.Report.Progress = &text
	}
	switch {
	case r.Checkpoint != nil && r.CheckpointBase64 != nil:
		return out, invalid("want a checkpoint either as it is or in base64")
	case r.Checkpoint != nil:
		out.Report.Checkpoint = r.Checkpoint
	case r.CheckpointBase64 != nil:
		bytes := string(r.CheckpointBase64)
		out.Report.Checkpoint = &bytes
	}
	if c := out.Report.Checkpoint; c != nil && len(*c) > maxCheckpoint {
		return out, invalid("the checkpoint has %d bytes, more than %d", len(*c), maxCheckpoint)
	}
	if t := r.Tail; t != nil {
		if err := t.check(); err != nil {
			return out, err
		}
		out.Report.Tail = &task.Tail{
			Text: string(t.Base64), TailEnd: task.TailEnd{All: t.End, Stdout: t.Stdout, Stderr: t.Stderr},
		}
	}
	if len(r.Updates) == 0 {
		return out, nil
	}
	if r.UpdatesFrom < 1 || r.UpdatesFrom > MostUpdates || r.UpdatesFrom+len(r.Updates)-1 > MostUpdates {
		return out, invalid("updates_from: want the number of the first update in the round, from 1; a round has at "+
			"most %d updates", MostUpdates)
	}
	for _, line := range r.Updates {
		if len(line) > LongestUpdate || !utf8.ValidString(line) || strings.ContainsAny(line, "\n\r") {
			return out, invalid("updates: want lines of at most %d bytes", LongestUpdate)
		}
	}
	out.Report.Updates, out.Report.FirstUpdate = r.Updates, r.UpdatesFrom
	return out, nil
}

// WriteDependencies writes what the task of a run has waited for, as the file `after` of a round's directory
// (docs/programs.md). The run must be one of the worker's own.
func (b *Broker) WriteDependencies(ctx context.Context, t *access.Token, id string, r Run, to io.Writer) error {
	if _, err := b.taskOf(ctx, t, id, r, "read the dependencies of"); err != nil {
		return err
	}
	unread, err := WriteDependencies(ctx, b.store, r.ID, to)
	return cmp.Or(unread, err)
}

// taskOf returns the task of a run, which must be one of the worker's own. The verb is for the error.
func (b *Broker) taskOf(ctx context.Context, t *access.Token, id string, r Run, verb rules.Verb) (*task.Task, error) {
	s, err := parseSession(t, id)
	if err != nil {
		return nil, err
	}
	if err := s.checkRuns(1, []Run{r}); err != nil {
		return nil, err
	}
	stored, err := b.store.Read(ctx, []int64{r.ID}, redisstate.Want{
		Fields: redisstate.Facts,
		Rounds: redisstate.OneRound(r.Round),
	})
	if err != nil {
		return nil, err
	}
	of := stored[0].Task
	switch {
	case of == nil || of.Rounds.At(r.Round).Claim != r.Claim: // the error says nothing about the task of another worker
		return nil, &rules.StateError{ID: r.ID, Verb: verb}
	case of.State != task.Running || of.Round != r.Round:
		return nil, &rules.StateError{ID: r.ID, Verb: verb, State: of.State, Round: of.Round}
	}
	return of, nil
}
