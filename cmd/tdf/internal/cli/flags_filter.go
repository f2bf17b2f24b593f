package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/listing"
	"github.com/tdf-framework/tdf/internal/selection"
	"github.com/tdf-framework/tdf/manager"
)

// A Filter holds the flags that select tasks.
type Filter struct {
	selection.Filter
	Changes bool // the command has flags that change tasks
}

// Flags adds the filter's flags to a command.
func (f *Filter) Flags(c *cobra.Command) {
	f.Filter.Flags(c.Flags(), f.Changes)
}

// OnlyFailedCallbacks adds the condition that the callback of the task has failed for good.
func (f *Filter) OnlyFailedCallbacks() { f.Callback = selection.CallbackFailed }

// Given reports whether the user gave ids or flags of the filter.
func (f *Filter) Given(ids []string) bool { return len(ids) > 0 || !f.Empty() }

// SetCampaign selects the tasks of the campaign that an argument names.
func (f *Filter) SetCampaign(name string) error {
	if f.Group != "" && f.Group != name {
		return Usagef("campaign %s with --campaign %s: want one campaign", name, f.Group)
	}
	f.Group = name
	return nil
}

// CampaignOrTasks does the same as SetCampaign if the only argument names no task. It returns the names of tasks.
func (f *Filter) CampaignOrTasks(args []string) (names []string, err error) {
	if len(args) != 1 {
		return args, nil
	}
	_, id := manager.SplitTaskName(args[0])
	if _, err := selection.IDs([]string{id}); err != nil {
		return nil, f.SetCampaign(args[0])
	}
	return args, nil
}

// Check returns an error for invalid flags and ids. It needs no connection to Redis.
func (f *Filter) Check(names []string, cursor string) error {
	var ids []string
	for _, name := range names {
		_, id := manager.SplitTaskName(name)
		ids = append(ids, id)
	}
	q, err := f.at(time.Time{}, ids)
	if err != nil {
		return err
	}
	q.Since, q.Before = time.Time{}, time.Time{}
	return listing.Validate(q, cursor[strings.LastIndexByte(cursor, '.')+1:])
}

// at returns the query for the flags and ids, at a time of Redis's clock.
func (f *Filter) at(now time.Time, ids []string) (manager.Query, error) {
	f.IDs = ids
	q, err := f.Query(now)
	return q, invalidFilter(err)
}

// Resolve returns the tasks that the flags and the names of tasks select. An unknown campaign is an error.
func (f *Filter) Resolve(ctx context.Context, s *Shards, names []string) (admin.Selection, error) {
	if err := f.checkCampaign(ctx, s); err != nil {
		return nil, err
	}
	var now time.Time
	if f.NeedsClock() {
		var err error
		if now, err = s.Now(ctx); err != nil {
			return nil, err
		}
	}
	chosen, err := s.Select(names, func(ids []string) (manager.Query, error) { return f.at(now, ids) })
	if wrong := new(admin.NamespaceError); errors.As(err, &wrong) {
		return nil, Usagef("%v", wrong)
	}
	return chosen, err
}

// checkCampaign returns an error for a campaign without tasks, because its name is probably misspelt.
func (f *Filter) checkCampaign(ctx context.Context, s *Shards) error {
	if f.Group == "" {
		return nil
	}
	counts, err := s.Counts(ctx, f.Group)
	if err != nil || counts.Total() > 0 {
		return err
	}
	return UnknownCampaign(f.Group)
}

// ParseIDs reads ids and ranges of ids, such as 7 and 12-40.
func ParseIDs(args []string) ([]int64, error) {
	ids, err := selection.IDs(args)
	return ids, invalidFilter(err)
}

// Paging holds the flags that limit and continue a long list.
type Paging struct {
	Limit  int
	Cursor string
	All    bool
}

// Flags adds the flags to a command that lists items.
func (p *Paging) Flags(c *cobra.Command, limit int, items string) {
	c.Flags().IntVar(&p.Limit, "limit", limit, "`N` maximum number of "+items)
	c.Flags().StringVar(&p.Cursor, "cursor", "", "`CURSOR` continuation point, as printed by an earlier call")
	c.Flags().BoolVar(&p.All, "all", false,
		"all "+items+", without a limit on their number or on the time of the search")
}

func (p *Paging) Check() error {
	if p.Limit < 1 {
		return Usagef("invalid value %d for --limit: want at least 1", p.Limit)
	}
	return nil
}

// NextPage returns the command that prints the next page of a list.
func NextPage(command, cursor string) string {
	return fmt.Sprintf("tdf %s … --cursor %s (or --all)", command, cursor)
}
