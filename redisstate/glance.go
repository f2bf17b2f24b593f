package redisstate

import (
	"context"
	"slices"

	"github.com/tdf-framework/tdf"
)

var (
	// What tells most tasks apart, read of each.
	headFields = []string{"state", "round", "program", "group", "outcome"}
	// What there is to know about a task without its texts.
	bodyFields = []string{
		"source", "start_after", "end_before", "timeout", "max_fails", "max_timeouts", "max_losses", "fail_on",
		"fails", "timeouts", "losses", "releases", "reopens", "revision", "unfit", "ready", "deadline", "lease_until", "not_on",
	}
	roundFacts = slices.Concat(stateNames(), []string{
		"timeout", "failure", "lost", "started", "worker", "claim", "exit", "permanent", "program_sha256", "seconds", "cpu_seconds",
		"max_rss", "output_bytes", "error_bytes", "progress", "pid", "last_output",
	})
)

func stateNames() []string {
	names := make([]string, len(tdf.States))
	for i, s := range tdf.States {
		names[i] = string(s)
	}
	return names
}

// Glance reads tasks without their texts: the input, meta, checkpoint and log, and what the rounds printed. Of
// the rounds only the last so many are read. At first keep sees a task's state, program, group and
// outcome; one that it does not keep, or that is not there, is nil.
func (s *Store) Glance(ctx context.Context, ids []int64, rounds int, keep func(*tdf.Task) bool) ([]*tdf.Task, error) {
	hashes := make([]tdf.Hash, len(ids))
	for i := range hashes {
		hashes[i] = tdf.Hash{}
	}
	if _, err := s.loadFields(ctx, ids, hashes, func(int) []string { return headFields }); err != nil {
		return nil, err
	}
	for i, h := range hashes {
		if len(h) == 0 || !keep(head(ids[i], h)) {
			hashes[i] = nil
		}
	}
	_, err := s.loadFields(ctx, ids, hashes, func(i int) []string {
		if hashes[i] == nil {
			return nil
		}
		return facts(hashes[i].Round(), rounds)
	})
	tasks := make([]*tdf.Task, len(ids))
	for i, h := range hashes {
		if h != nil {
			tasks[i], _ = tdf.ParseSummary(ids[i], h) // what makes no sense is for the server to say
		}
	}
	return tasks, err
}

func head(id int64, h tdf.Hash) *tdf.Task {
	return &tdf.Task{
		ID: id, State: tdf.State(h["state"]), Outcome: h["outcome"], Properties: tdf.Properties{Program: h["program"], Group: h["group"]},
	}
}

func facts(current, rounds int) []string {
	names := slices.Clone(bodyFields)
	for i := max(0, current-rounds+1); i <= current; i++ {
		names = append(names, roundFields(i, roundFacts)...)
	}
	return names
}
