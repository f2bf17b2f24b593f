package admin

import (
	"context"

	"github.com/tdf-framework/tdf/notify/notice"
)

// Notices returns the last 1,000 notices (docs/notifications.md), the newest ones first. It leaves out those that another program has written; the error
// names them.
func (a *Admin) Notices(ctx context.Context) ([]notice.Notice, error) {
	return notice.List(ctx, a.redis())
}
