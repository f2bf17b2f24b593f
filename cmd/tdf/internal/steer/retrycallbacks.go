package steer

import (
	"context"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/format"
)

// retryCallbacks makes managers call the callbacks again that have failed for good.
func (s *steering) retryCallbacks(ctx context.Context, args []string) error {
	if s.changes.Given() || s.dependents {
		return cli.Usagef("--callback runs callbacks again, and no tasks: want no flags that change tasks")
	}
	s.filter.OnlyFailedCallbacks()
	if err := s.filter.Check(args, ""); err != nil {
		return err
	}
	return s.a.WithShards(ctx, func(all *cli.Shards) error {
		queries, err := s.filter.Resolve(ctx, all, args)
		if err != nil {
			return err
		}
		chosen := &choice{}
		for t, err := range all.List(ctx, queries) {
			if err != nil {
				return err
			}
			chosen.eligible = append(chosen.eligible, t.Ref())
		}
		s.a.Say("%s: the failed callbacks of %s", s.name, format.Tasks(int64(len(chosen.eligible))))
		if len(chosen.eligible) == 0 {
			return nil
		}
		if s.dryRun {
			return s.list(chosen.eligible)
		}
		if err := s.a.Confirm(ctx, s.name, s.yes); err != nil {
			return err
		}
		for _, m := range all.All {
			var ids []int64
			for _, r := range chosen.eligible {
				if r.Namespace == m.Namespace() {
					ids = append(ids, r.ID)
				}
			}
			if err := m.RetryCallbacks(ctx, ids...); err != nil {
				return err
			}
		}
		return nil
	})
}
