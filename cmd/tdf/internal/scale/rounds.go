package scale

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/internal/worker/resources"
	"github.com/tdf-framework/tdf/redisstate/counts"
)

// A scaling is a running tdf scale.
type scaling struct {
	a       *cli.App
	admin   *admin.Admin
	cluster *slurm
	offer   class.Offer // of the workers
	prefix  string      // of the names of the workers: that of their token, or "" if they use Redis
	slots   int         // of one worker, for tasks that ask for nothing
	most    int         // jobs at the same time
	health  health

	known map[string]bool // jobs that have not ended, as the last round saw them: whether their workers have registered
	said  string          // the last line about the state
}

// A state is what one round has read.
type state struct {
	jobs    []string                 // their ids
	workers map[string]*admin.Worker // by the ids of the jobs
	waiting []counts.Claimable
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
	d := s.demand(&now)
	n := d.submissions()
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
	d := s.demand(&now)
	n := d.submissions()
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
		if id := s.jobOf(workers[i].Name); id != "" {
			now.workers[id] = &workers[i]
		}
	}
	now.waiting, err = s.admin.Claimable(ctx, s.offer, s.mostCounted())
	return now, err
}

// workerPrefix begins the names that tdf-worker.sbatch gives to workers: slurm-JOB, or slurm-JOB.RESTARTS. The name of
// the token and a slash come before it if they work over the HTTP API.
const workerPrefix = "slurm-"

// jobOf returns the id of the worker's job, or "" for a worker that is not of these jobs. Workers of other tokens may
// have any name after that of their token.
func (s *scaling) jobOf(name string) string {
	id, is := strings.CutPrefix(name, s.prefix+workerPrefix)
	if !is {
		return ""
	}
	id, _, _ = strings.Cut(id, ".")
	return id
}

// mostCounted is how many waiting tasks are counted: twice as many as all jobs can run at once.
func (s *scaling) mostCounted() int {
	whole := s.whole()
	return 2 * s.most * whole.slots
}

// whole returns what a worker has free that runs nothing.
func (s *scaling) whole() room {
	offered := s.offer.Resources
	if offered == nil {
		return room{slots: s.slots}
	}
	slots := max(s.slots, resources.MostRounds(offered))
	return room{slots, class.CapacitiesOf(withSlots(offered, s.slots))}
}

// free returns what a worker had free at its last heartbeat. How many of its rounds ask for nothing is unknown, so all
// count as such.
func (s *scaling) free(w *admin.Worker) room {
	r := room{slots: max(0, w.Slots-len(w.Runs))}
	offered, _ := class.ParseAmounts(w.Resources)
	if offered == nil {
		return r
	}
	used, _ := class.ParseAmounts(w.ResourcesUsed)
	for i := range offered {
		offered[i].Units = max(0, offered[i].Units-used.Of(offered[i].Name))
	}
	r.capacities = class.CapacitiesOf(withSlots(offered, max(0, s.slots-len(w.Runs))))
	return r
}

func withSlots(of class.Amounts, slots int) class.Amounts {
	return append(slices.Clip(of), class.Amount{Name: class.Slots, Units: int64(slots) * class.Scale})
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
	d := demand{waiting: now.waiting, whole: s.whole(), jobs: len(now.jobs), most: s.most, probe: s.health.probing()}
	for _, id := range now.jobs {
		w := now.workers[id]
		switch {
		case w == nil:
			d.starting++
		case w.Alive && w.State == "working":
			d.free = append(d.free, s.free(w))
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
	waiting := 0
	for _, w := range now.waiting {
		waiting += w.Tasks
	}
	text := fmt.Sprintf("%s waiting; %s of at most %d", format.Tasks(waiting), jobs, s.most)
	if waiting >= s.mostCounted() {
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
