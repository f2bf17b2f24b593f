package dashboard

import (
	"context"
	"maps"
	"net/url"

	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/task"
)

// A failuresPage is what the page of the failures shows.
type failuresPage struct {
	admin.Failures
	Problem string     // what is wrong with the filter
	Filter  url.Values // of the tasks whose failures the page shows
}

func loadFailures(ctx context.Context, v *visit) (any, error) {
	page := failuresPage{Filter: onlyFilter(v.query)}
	err := page.read(ctx, v)
	if task.CodeOf(err) == task.CodeInvalid {
		page.Problem, err = err.Error(), nil
	}
	return page, err
}

func (p *failuresPage) read(ctx context.Context, v *visit) error {
	chosen, _, err := v.selected(ctx, v.query)
	if err != nil {
		return err
	}
	p.Failures, err = v.dashboard.shards.Failures(ctx, chosen, v.query.Get("cursor"))
	return err
}

// Tasks returns the address of the tasks of a group of failures, or that which retries them.
func (p failuresPage) Tasks(path, id string) string {
	of := maps.Clone(p.Filter)
	of.Set("failure", id)
	if path != "/tasks" {
		of.Set("do", "retry")
		if !of.Has("state") {
			of.Set("state", "failed,timed_out,expired")
		}
	}
	return Base + path + "?" + of.Encode()
}
