package steer

import (
	"context"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/manager"
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
	return s.a.WithManager(ctx, func(m *cli.Client) error {
		q, err := s.filter.Resolve(ctx, m, args)
		if err != nil {
			return err
		}
		chosen := &choice{}
		var ids []int64
		for t, err := range m.List(ctx, q) {
			if err != nil {
				return err
			}
			chosen.eligible, ids = append(chosen.eligible, manager.Ref{ID: t.ID}), append(ids, t.ID)
		}
		s.a.Say("%s: the failed callbacks of %s", s.name, format.Tasks(int64(len(ids))))
		if len(ids) == 0 {
			return nil
		}
		if s.dryRun {
			return s.list(chosen.eligible)
		}
		if err := s.a.Confirm(ctx, s.name, s.yes); err != nil {
			return err
		}
		return m.RetryCallbacks(ctx, ids...)
	})
}
