package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
)

// campaignsPerPage is the number of campaigns on a page of their list.
const campaignsPerPage = 50

var errNoCampaign = task.NewError(task.CodeNotFound, "there is no such campaign")

func loadCampaigns(ctx context.Context, v *visit) (any, error) {
	prefix := v.query.Get("q")
	if v.owner != "" && !task.OwnsName(v.owner, prefix) {
		prefix = v.owner + "/"
	}
	return v.dashboard.shards.GroupPage(ctx, prefix, v.query.Get("cursor"), campaignsPerPage)
}

// A campaign is what the page of a campaign shows.
type campaign struct {
	Name string
	admin.Status
	Failures admin.Failures
	Stderr   map[string]string // the end of the stderr of examples, by the name of the task
	Plot     *plotted
}

// Title returns the title of the page.
func (c *campaign) Title() string { return "Campaign " + c.Name }

// Total returns the number of tasks.
func (c *campaign) Total() int64 { return c.Counts.Total() }

// Finished returns the number of finished tasks, with those in the archive.
func (c *campaign) Finished() int64 { return c.Counts.Total() - c.Counts.Unfinished() }

// campaignName returns the campaign of an address, if the user may see it.
func campaignName(v *visit) (string, error) {
	name := v.path("name")
	if !task.OwnsName(v.owner, name) {
		return "", errMayNot
	}
	return name, nil
}

func ofCampaign(v *visit) Subject { return Subject{Group: v.path("name"), Owner: v.owner} }

// Bounds of what the page of a campaign reads.
const (
	failuresEvery = 5 * time.Second
	mostFailures  = 10
	stderrShown   = 2000 // bytes
)

func loadCampaign(ctx context.Context, v *visit) (any, error) {
	name, err := campaignName(v)
	if err != nil {
		return nil, err
	}
	c := &campaign{Name: name}
	if c.Status, err = v.dashboard.progress(ctx, "", name, v.dashboard.shards.Watch); err != nil {
		return nil, err
	}
	if c.Total() == 0 {
		return nil, errNoCampaign
	}
	failures := make(chan error, 1) // both may read for half a second, so they do so at the same time
	go func() {
		if c.Counts.Failures()+c.Counts[task.Archived] == 0 {
			failures <- nil
			return
		}
		failures <- c.readFailures(ctx, v)
	}()
	c.Plot, err = v.plotted(ctx, name)
	return c, errors.Join(err, <-failures)
}

// readFailures reads the groups of failures with most tasks, and the stderr of an example of each.
func (c *campaign) readFailures(ctx context.Context, v *visit) error {
	type found struct {
		admin.Failures
		stderr map[string]string
	}
	all, err := recent(ctx, &v.dashboard.facts, "failures "+v.owner+" "+c.Name, failuresEvery, func() (found, error) {
		f, err := v.failures(ctx, c.Name)
		if err != nil || len(f.Groups) == 0 {
			return found{f, nil}, err
		}
		f.Groups = f.Groups[:min(len(f.Groups), mostFailures)]
		stderr, err := examples(ctx, v, f.Groups)
		return found{f, stderr}, err
	})
	c.Failures, c.Stderr = all.Failures, all.stderr
	return err
}

// failures returns the failures of a campaign, of one page of tasks in each namespace.
func (v *visit) failures(ctx context.Context, campaign string) (all admin.Failures, err error) {
	for i := range v.dashboard.places {
		one := make(admin.Selection, len(v.dashboard.places))
		q := v.own(manager.Query{Group: campaign})
		one[i] = &q
		found, err := v.dashboard.shards.Failures(ctx, one, "")
		if err != nil {
			return all, err
		}
		if len(v.dashboard.places) == 1 {
			return found, nil
		}
		of, more := all.Of+found.Of, all.Next+found.Next
		all.Merge(found)
		all.Of, all.Next = of, more
	}
	return all, nil
}

// examples returns the end of the stderr of an example of each group, unless the task has run again since.
func examples(ctx context.Context, v *visit, groups []admin.FailureGroup) (map[string]string, error) {
	rounds := map[string]int{}
	chosen := make(admin.Selection, len(v.dashboard.places))
	for _, g := range groups {
		rounds[g.Example.Name()] = g.Example.Round
		i := max(0, slices.Index(v.dashboard.shards.Namespaces(), g.Example.Namespace))
		if chosen[i] == nil {
			q := v.own(manager.Query{Read: manager.ReadOutput})
			chosen[i] = &q
		}
		chosen[i].IDs = append(chosen[i].IDs, g.Example.ID)
	}
	page, err := v.dashboard.shards.Page(ctx, chosen, "", len(groups))
	stderr := map[string]string{}
	for _, t := range page.Tasks {
		if r := t.LastRun(); r != nil && r.Number == rounds[t.Name()] {
			stderr[t.Name()] = strings.ToValidUTF8(r.Error[max(0, len(r.Error)-stderrShown):], "�")
		}
	}
	return stderr, err
}

// Tasks returns the address of the list of the campaign's tasks: of those in a group of failures, or of all tasks if
// failure is empty.
func (c *campaign) Tasks(failure string) string {
	of := url.Values{"campaign": {c.Name}}
	if failure != "" {
		of.Set("failure", failure)
	}
	return Base + "/tasks?" + of.Encode()
}

// Retry returns the address of the confirmation that retries the tasks of a group of failures.
func (c *campaign) Retry(failure string) string {
	return Base + "/tasks/confirm?" + url.Values{
		"campaign": {c.Name}, "failure": {failure}, "do": {"retry"},
		"state": {"failed,timed_out,expired"},
	}.Encode()
}

// CampaignAddress returns the path of the page of a campaign.
func CampaignAddress(name string) string { return Base + "/campaigns/" + url.PathEscape(name) }

// stateOf says how far a campaign is.
func stateOf(s manager.GroupStatus) string {
	switch {
	case s.Counts.Unfinished() == 0 && s.Counts.Failures() > 0:
		return "finished with failures"
	case s.Counts.Unfinished() == 0:
		return "finished"
	case s.Counts[task.Running]+s.Counts[task.Executed] > 0:
		return "running"
	}
	return "waiting"
}

// shareOf returns a part of a whole in percent.
func shareOf(part, whole int64) string {
	if whole == 0 {
		return "0 %"
	}
	return fmt.Sprintf("%.0f %%", float64(part)/float64(whole)*100)
}
