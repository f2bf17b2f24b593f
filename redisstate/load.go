package redisstate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
)

// Seen is a task as far as judging it needs: without the texts of its rounds.
type Seen struct {
	ID      int64
	Task    *tdf.Task // nil: there is none
	Invalid error     // what makes no sense about an open task
}

var (
	// What judging an executed task in its first round needs: nearly all that is ever due.
	judgedByFirst = slices.Concat([]string{
		"state", "round", "start_after", "end_before", "group", "fail_on", "max_fails", "fails",
	}, roundFields(0, []string{"executed", "claim", "exit", "permanent"}))
	judgedBy = []string{
		"timeout", "outcome", "ready", "deadline", "lease_until", "max_timeouts", "max_losses",
		"timeouts", "losses", "releases", "reopens", "revision",
	}
	// What an open task may make no sense by, or what may change when it is opened again.
	definedBy     = []string{"program", "source", "input", "meta"}
	roundJudgedBy = []string{"open", "running", "executed", "started", "claim", "worker", "exit", "permanent"}
)

// Load reads what the rules need to judge tasks.
func (s *Store) Load(ctx context.Context, ids []int64) ([]Seen, error) {
	return s.load(ctx, ids, func(h tdf.Hash) []string {
		if executedFirst(h) {
			return nil
		}
		return more(h)
	})
}

// executedFirst: tasks that were executed in their first round need no second look.
func executedFirst(h tdf.Hash) bool { return h["state"] == string(tdf.Executed) && h["round"] == "0" }

// Inspect reads all there is to know about a task but its log, its checkpoint, and what its rounds printed; of the rounds the
// last two. The error is [tdf.ErrNoTask] where there is none.
func (s *Store) Inspect(ctx context.Context, id int64) (Seen, error) {
	seen, err := s.load(ctx, []int64{id}, func(h tdf.Hash) []string {
		return slices.Concat(headFields, definedBy, facts(h.Round(), 2))
	})
	if err != nil {
		return Seen{}, err
	}
	if seen[0].Task == nil {
		return Seen{}, noTask(id)
	}
	return seen[0], nil
}

// load reads what judges most tasks, and then the rest that it is told to by that.
func (s *Store) load(ctx context.Context, ids []int64, rest func(tdf.Hash) []string) ([]Seen, error) {
	hashes := make([]tdf.Hash, len(ids))
	for i := range hashes {
		hashes[i] = tdf.Hash{}
	}
	tooLong, err := s.loadFields(ctx, ids, hashes, func(int) []string { return judgedByFirst })
	if err != nil {
		return nil, err
	}
	tooLong2, err := s.loadFields(ctx, ids, hashes, func(i int) []string {
		if len(hashes[i]) == 0 {
			return nil
		}
		return rest(hashes[i])
	})
	if err != nil {
		return nil, err
	}
	if err := s.loadTexts(ctx, ids, hashes); err != nil {
		return nil, err
	}
	seen := make([]Seen, len(ids))
	for i, h := range hashes {
		seen[i].ID = ids[i]
		if len(h) > 0 {
			seen[i].Task, seen[i].Invalid = tdf.ParseSummary(ids[i], h)
			seen[i].Task.Unread &^= readTexts(h)
		}
		if err := cmp.Or(tooLong[i], tooLong2[i]); err != nil {
			seen[i].Invalid = err // its default may be valid, but is not what it says
		}
	}
	return seen, nil
}

// more are the properties that only some tasks need: those of the round that they are in,
// of the rounds that were lost before it, and of an open task those that may make no sense.
func more(h tdf.Hash) []string {
	round := h.Round()
	names := slices.Concat(judgedBy, roundFields(round, roundJudgedBy))
	for i := max(0, round-maxNamedLosses); i < round; i++ {
		names = append(names, tdf.RoundField(i, "worker"), tdf.RoundField(i, "lost"))
	}
	switch state := tdf.State(h["state"]); {
	case state == tdf.Open || state.Finished():
		names = append(names, definedBy...)
	case state == tdf.Running:
		names = append(names, "not_on")
	}
	return names
}

// readTexts are the texts that judging an open or finished task reads.
func readTexts(h tdf.Hash) (read tdf.Texts) {
	if state := tdf.State(h["state"]); state == tdf.Open || state.Finished() {
		read = tdf.TextInput | tdf.TextMeta
	}
	return read
}

func roundFields(round int, names []string) []string {
	fields := make([]string, len(names))
	for i, name := range names {
		fields[i] = tdf.RoundField(round, name)
	}
	return fields
}

const maxNamedLosses = 100

// loadTexts notes whether there is an error, and for a round without a claim whether both
// texts are there at all, which is how the original's commits are told to be complete.
func (s *Store) loadTexts(ctx context.Context, ids []int64, hashes []tdf.Hash) error {
	type texts struct {
		errorName, outputName string
		length                *redis.IntCmd
		output, err           *redis.BoolCmd
	}
	found := make([]texts, len(ids))
	err := s.pipeline(ctx, func(p redis.Pipeliner) {
		for i, id := range ids {
			h := hashes[i]
			round := h.Round()
			if h[tdf.RoundField(round, "executed")] == "" {
				continue
			}
			f := texts{errorName: tdf.RoundField(round, "error"), outputName: tdf.RoundField(round, "output")}
			f.length = p.HStrLen(ctx, s.keys.Task(id), f.errorName)
			if h[tdf.RoundField(round, "claim")] == "" {
				f.output = p.HExists(ctx, s.keys.Task(id), f.outputName)
				f.err = p.HExists(ctx, s.keys.Task(id), f.errorName)
			}
			found[i] = f
		}
	})
	if err != nil {
		return fmt.Errorf("loading tasks: redis: %w", err)
	}
	for i, f := range found {
		if f.output != nil && f.output.Val() {
			hashes[i][f.outputName] = ""
		}
		if f.err != nil && f.err.Val() {
			hashes[i][f.errorName] = ""
		}
		if f.length != nil && f.length.Val() > 0 {
			hashes[i][f.errorName] = "(not loaded)"
		}
	}
	return nil
}

// Sight reads tasks together with the lists that hold them.
func (s *Store) Sight(ctx context.Context, ids []int64) ([]tdf.Placement, error) {
	seen, err := s.load(ctx, ids, more)
	if err != nil {
		return nil, err
	}
	scores := make([][]*redis.FloatCmd, len(ids))
	err = s.pipeline(ctx, func(p redis.Pipeliner) {
		for i, id := range ids {
			for _, list := range tdf.Lists {
				scores[i] = append(scores[i], p.ZScore(ctx, s.keys.List(list), strconv.FormatInt(id, 10)))
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("looking tasks up: redis: %w", err)
	}
	sightings := make([]tdf.Placement, len(ids))
	for i := range ids {
		sightings[i] = tdf.Placement{ID: ids[i], Task: seen[i].Task, Invalid: seen[i].Invalid}
		for j, list := range tdf.Lists {
			if scores[i][j].Err() == nil {
				sightings[i].Lists = append(sightings[i].Lists, list)
				sightings[i].Scores = append(sightings[i].Scores, tdf.Time(scores[i][j].Val()))
			}
		}
	}
	return sightings, nil
}

// Now returns the time by Redis's clock.
func (s *Store) Now(ctx context.Context) (tdf.Time, error) {
	var now tdf.Time
	err := s.persist(ctx, func(ctx context.Context) error {
		t, err := s.rdb.Time(ctx).Result()
		now = tdf.At(t)
		return err
	})
	return now, err
}

// idsOf reads the members of a list; what is no id was not put there by anybody who counts.
func idsOf(members []string) []int64 {
	ids := make([]int64, 0, len(members))
	for _, m := range members {
		if id, err := strconv.ParseInt(m, 10, 64); err == nil && strconv.FormatInt(id, 10) == m {
			ids = append(ids, id)
		}
	}
	return ids
}

func unique(ids []int64) []int64 {
	slices.Sort(ids)
	return slices.Compact(ids)
}
