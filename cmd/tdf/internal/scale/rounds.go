package scale

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tdf-framework/tdf/internal/class"

	"github.com/tdf-framework/tdf/admin"
	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/format"
)

// A scaling is a running tdf scale.
type scaling struct {
	a       *cli.App
	admin   *admin.Admin
	cluster *slurm
	offer   class.Offer // of the workers
	slots   int         // of one worker
	most    int         // jobs at the same time
	health  health

	known map[string]bool // jobs that have not ended, as the last round saw them: whether their workers have registered
	said  string          // the last line about the state
}

// A state is what one round has read.
type state struct {
	jobs    []string                 // their ids
	workers map[string]*admin.Worker // by the ids of the jobs
	waiting int
}

// run repeats rounds until ctx ends. It goes on if a command of Slurm fails.
func (s *scaling) run(ctx context.Context, interval time.Duration) error {
	for {
		err := s.round(ctx)
		if err != nil && !errors.As(err, new(slurmError)) {
			return err
		}
		if err != nil {
			s.sayOnce("%v", err)
		}
		if err := cli.Sleep(ctx, interval); err != nil {
			s.a.Say("ended; its jobs continue")
			return nil
		}
	}
}

// round submits the jobs that are missing.
func (s *scaling) round(ctx context.Context) error {
	now, err := s.read(ctx)
	if err != nil {
		return err
	}
	s.watch(ctx, &now)
	n := s.demand(&now).submissions()
	if s.health.paused(time.Now()) {
		n = 0
	}
	submitted, err := s.submit(ctx, n)
	s.sayOnce("%s", now.text(s, submitted))
	if err != nil {
		return fmt.Errorf("submit a job: %w; the next attempt is in %v", err, s.health.refusal(time.Now()))
	}
	return nil
}

// dryRun prints what the first round would do.
func (s *scaling) dryRun(ctx context.Context) error {
	now, err := s.read(ctx)
	if err != nil {
		return err
	}
	s.watch(ctx, &now)
	n := s.demand(&now).submissions()
	s.a.Say("%s; would submit %s", now.text(s, nil), format.Counted(n, "job"))
	line := "sbatch"
	for _, word := range s.cluster.sbatch() {
		line += " " + cli.ShellWord(word)
	}
	fmt.Fprintln(s.a.Stdout, line)
	return nil
}

// read reads the jobs and their workers, and counts the tasks that wait.
func (s *scaling) read(ctx context.Context) (state, error) {
	now := state{workers: map[string]*admin.Worker{}}
	jobs, err := s.cluster.jobs(ctx)
	if err != nil {
		return now, fmt.Errorf("count the jobs: %w; no job is submitted", err)
	}
	now.jobs = jobs
	workers, err := s.admin.Workers(ctx)
	if err != nil {
		return now, err
	}
	for i := range workers {
		if id := jobOf(workers[i].Name); id != "" {
			now.workers[id] = &workers[i]
		}
	}
	now.waiting, err = s.admin.Claimable(ctx, s.offer, 2*s.most*s.slots)
	return now, err
}

// workerPrefix begins the names that tdf-worker.sbatch gives to workers: slurm-JOB, or slurm-JOB.RESTARTS. The name of
// the token and a slash come before it if they work over the HTTP API.
const workerPrefix = "slurm-"

func jobOf(worker string) string {
	name := worker[strings.LastIndexByte(worker, '/')+1:]
	id, is := strings.CutPrefix(name, workerPrefix)
	if !is {
		return ""
	}
	id, _, _ = strings.Cut(id, ".")
	return id
}

// watch notes which jobs have ended, and whether they had a worker.
func (s *scaling) watch(ctx context.Context, now *state) {
	present := map[string]bool{}
	for _, id := range now.jobs {
		present[id] = now.workers[id] != nil
		if present[id] && !s.known[id] {
			s.health.worked()
		}
	}
	for _, id := range endedJobs(s.known, present) {
		if s.known[id] || now.workers[id] != nil {
			s.health.worked()
			continue
		}
		end := s.cluster.fate(ctx, id)
		if end.cancelled {
			continue
		}
		pause := s.health.inVain(time.Now())
		s.a.Say("job %s ended without a worker: %s", id, cmp.Or(end.text, "Slurm has forgotten why"))
		if pause > 0 {
			s.a.Say("%d jobs in a row ended without a worker: the next job is submitted in %v", s.health.vain, pause)
		}
	}
	s.known = present
}

// endedJobs returns the jobs that were known and are not present, in the order of their ids.
func endedJobs(known, present map[string]bool) (ended []string) {
	for id := range known {
		if _, is := present[id]; !is {
			ended = append(ended, id)
		}
	}
	slices.Sort(ended)
	return ended
}

func (s *scaling) demand(now *state) demand {
	d := demand{waiting: now.waiting, slots: s.slots, jobs: len(now.jobs), most: s.most, probe: s.health.probing()}
	for _, id := range now.jobs {
		w := now.workers[id]
		switch {
		case w == nil:
			d.starting++
		case w.Alive && w.State == "working":
			d.free += max(0, w.Slots-len(w.Runs))
		}
	}
	return d
}

// submit submits n jobs, or fewer if sbatch fails.
func (s *scaling) submit(ctx context.Context, n int) (ids []string, err error) {
	for range n {
		id, err := s.cluster.submit(ctx)
		if err != nil {
			return ids, err
		}
		s.health.submitted()
		s.known[id] = false
		ids = append(ids, id)
	}
	return ids, nil
}

// text describes the state in one line.
func (now *state) text(s *scaling, submitted []string) string {
	jobs := format.Counted(len(now.jobs), "job")
	text := fmt.Sprintf("%s waiting; %s of at most %d", format.Tasks(now.waiting), jobs, s.most)
	if now.waiting >= 2*s.most*s.slots {
		text = "at least " + text
	}
	if len(submitted) > 0 {
		text += fmt.Sprintf("; submitted %s: %s", format.Counted(len(submitted), "job"), strings.Join(submitted, ", "))
	}
	return text
}

// sayOnce says a text, unless it is the same as before.
func (s *scaling) sayOnce(text string, args ...any) {
	line := fmt.Sprintf(text, args...)
	if line != s.said {
		s.a.Say("%s", line)
	}
	s.said = line
}
