package dependencies

import (
	"context"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// Check checks the dependencies of new tasks. The error wraps a *[task.PropertyError] if a task or a group does not
// exist, or if a task that must succeed is already finished without success. For a request that was carried out before,
// it checks nothing.
func Check(ctx context.Context, s *redisstate.Store, definitions []task.Properties) error {
	var all []link
	seen := map[link]bool{}
	for i := range definitions {
		for _, d := range linksTo(definitions[i].After, definitions[i].AfterAny) {
			if !seen[d] {
				seen[d] = true
				all = append(all, d)
			}
		}
	}
	if len(all) == 0 || conn.IsRepeated(ctx) {
		return nil
	}
	if err := task.ValidateAll(definitions); err != nil {
		return err
	}
	for page := range slices.Chunk(all, linksPerRead) {
		if err := checkLinks(ctx, s, page); err != nil {
			return err
		}
	}
	return nil
}

func checkLinks(ctx context.Context, s *redisstate.Store, all []link) error {
	tasks, groups := make([]*redis.SliceCmd, len(all)), make([]*redis.IntCmd, len(all))
	err := s.Conn.Pipeline(ctx, "read dependencies", func(p redis.Pipeliner) {
		for i, d := range all {
			if d.group != "" {
				groups[i] = p.Exists(ctx, s.Keys.Group(d.group))
			} else {
				tasks[i] = p.HMGet(ctx, s.Keys.Task(d.id), "state", "outcome")
			}
		}
	})
	if err != nil {
		return err
	}
	for i, d := range all {
		if d.group != "" {
			if groups[i].Val() == 0 {
				return &task.PropertyError{Property: linkFields[d.of], Reason: fmt.Sprintf("group %q has no tasks", d.group)}
			}
			continue
		}
		values := append(tasks[i].Val(), nil, nil) // the key of the task may be no hash
		err := task.CheckDependency(linkFields[d.of], d.id, task.State(conn.Text(values[0])), conn.Text(values[1]))
		if err != nil {
			return err
		}
	}
	return nil
}
