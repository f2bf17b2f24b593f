package admin

import (
	"context"

	"github.com/tdf-framework/tdf/notify"
)

// Notices returns the last 1,000 notices (docs/notifications.md), the newest ones first. It leaves out those that another program has written; the error
// names them.
func (a *Admin) Notices(ctx context.Context) ([]notify.Notice, error) {
	return notify.List(ctx, a.redis())
}
