package cli

import (
	"context"
	"os"

	"github.com/tdf-framework/tdf/internal/web/dashboard"
)

// CampaignPage returns the address of the page of a campaign in the dashboard, or of the overview if the name is empty.
// It returns "" if no process is known to serve the dashboard.
func (c *Client) CampaignPage(ctx context.Context, name string) (string, error) {
	if name == "" {
		return c.page(ctx, dashboard.Base)
	}
	return c.page(ctx, dashboard.CampaignAddress(name))
}

// TaskPage returns the address of the page of a task.
func (c *Client) TaskPage(ctx context.Context, id int64) (string, error) {
	return c.page(ctx, dashboard.TaskAddress(c.TaskName(id)))
}

func (c *Client) page(ctx context.Context, path string) (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", err
	}
	origin, err := c.Admin().Dashboard(ctx, host)
	if origin == "" {
		return "", err
	}
	return origin + path, err
}
