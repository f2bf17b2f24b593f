package redisstate

import (
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
	}, roundFields(0, []string{"executed", "claim", "exit"}))
	judgedBy = []string{
		"timeout", "outcome", "ready", "deadline", "lease_until", "max_timeouts", "max_losses",
		"timeouts", "losses", "releases", "reopens", "revision",
	}
	// What an open task may make no sense by, or what may change when it is opened again.
	definedBy     = []string{"program", "source", "input", "meta"}
	roundJudgedBy = []string{"open", "running", "executed", "started", "claim", "worker", "exit"}
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
		return slices.Concat(headFields, definedBy, facts(currentRound(h), 2))
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
	if err := s.loadFields(ctx, ids, hashes, func(int) []string { return judgedByFirst }); err != nil {
		return nil, err
	}
	err := s.loadFields(ctx, ids, hashes, func(i int) []string {
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
			seen[i].Task, seen[i].Invalid = tdf.ParseTask(ids[i], h)
		}
	}
	return seen, nil
}

// more are the properties that only some tasks need: those of the round that they are in,
// of the rounds that were lost before it, and of an open task those that may make no sense.
func more(h tdf.Hash) []string {
	round := currentRound(h)
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

func roundFields(round int, names []string) []string {
	fields := make([]string, len(names))
	for i, name := range names {
		fields[i] = tdf.RoundField(round, name)
	}
	return fields
}

const maxNamedLosses = 100

func currentRound(h tdf.Hash) int {
	n, _ := strconv.Atoi(h["round"])
	return max(n, 0)
}

// loadFields asks for the properties of each task that names says, and puts those that there are into its hash.
func (s *Store) loadFields(ctx context.Context, ids []int64, hashes []tdf.Hash, names func(i int) []string) error {
	return s.loadLarge(ctx, 0, ids, hashes, names)
}

// namesAtOnce is how many properties one command asks for: Redis has other clients.
const namesAtOnce = 1000

// loadLarge is loadFields where so many bytes may come.
func (s *Store) loadLarge(ctx context.Context, bytes int, ids []int64, hashes []tdf.Hash, names func(i int) []string) error {
	type question struct {
		task  int
		names []string
		reply *redis.SliceCmd
	}
	var asked []question
	for i := range ids {
		for some := range slices.Chunk(names(i), namesAtOnce) {
			asked = append(asked, question{task: i, names: some})
		}
	}
	err := s.pipeline(ctx, func(p redis.Pipeliner) {
		for i, q := range asked {
			asked[i].reply = p.HMGet(ctx, s.keys.Task(ids[q.task]), q.names...)
		}
	})
	if err != nil {
		return fmt.Errorf("loading tasks: redis: %w", err)
	}
	for _, q := range asked {
		for j, v := range q.reply.Val() { // none where the key is no hash
			if v, ok := v.(string); ok {
				hashes[q.task][q.names[j]] = v
			}
		}
	}
	return nil
}

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
			round := currentRound(h)
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
func (s *Store) Sight(ctx context.Context, ids []int64) ([]tdf.Sighting, error) {
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
	sightings := make([]tdf.Sighting, len(ids))
	for i := range ids {
		sightings[i] = tdf.Sighting{ID: ids[i], Task: seen[i].Task, Invalid: seen[i].Invalid}
		for j, list := range tdf.Lists {
			if scores[i][j].Err() == nil {
				sightings[i].Lists = append(sightings[i].Lists, list)
			}
		}
	}
	return sightings, nil
}

// Tasks reads tasks whole, each as it was at one moment; nil stands for one that is not there. It reads a few MiB at once.
// Redis does nothing else while it writes out one of them: see [Store.Task] for a task that may have many rounds.
func (s *Store) Tasks(ctx context.Context, ids ...int64) ([]*tdf.Task, error) {
	sizes, err := s.recordSizes(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("reading tasks: %w", err)
	}
	tasks := make([]*tdf.Task, 0, len(ids))
	for len(ids) > 0 {
		n := fitting(sizes, readAtOnce)
		some, err := s.tasks(ctx, ids[:n], sum(sizes[:n]))
		if err != nil {
			return nil, fmt.Errorf("reading tasks: redis: %w", err)
		}
		tasks, ids, sizes = append(tasks, some...), ids[n:], sizes[n:]
	}
	return tasks, nil
}

func (s *Store) tasks(ctx context.Context, ids []int64, bytes int64) ([]*tdf.Task, error) {
	replies := make([]*redis.MapStringStringCmd, len(ids))
	err := s.pipeline(ctx, func(p redis.Pipeliner) {
		for i, id := range ids {
			replies[i] = p.HGetAll(ctx, s.keys.Task(id))
		}
	})
	if err != nil {
		return nil, err
	}
	tasks := make([]*tdf.Task, len(ids))
	for i, id := range ids {
		if h := replies[i].Val(); len(h) > 0 {
			tasks[i], _ = tdf.ParseTask(id, h)
		}
	}
	return tasks, nil
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
