package dashboard

import (
	"context"
	"errors"

	"github.com/tdf-framework/tdf/internal/notify/notice"
	"github.com/tdf-framework/tdf/internal/task"
)

// shownNotices is the number of notices on their page.
const shownNotices = 100

// A noticesPage is what the page of the notices shows.
type noticesPage struct {
	Notices []notice.Notice
	Problem string // which notices cannot be read
}

func loadNotices(ctx context.Context, v *visit) (any, error) {
	all, err := v.place().admin.Notices(ctx, shownNotices)
	page := noticesPage{Notices: all}
	if errors.Is(err, notice.ErrUnreadable) {
		page.Problem, err = err.Error(), nil
	}
	return page, err
}

// CampaignOf returns the campaign of a notice if a campaign can have this name, else "".
func (noticesPage) CampaignOf(n notice.Notice) string {
	if len(n.Campaign) > task.MaxName {
		return ""
	}
	return n.Campaign
}
