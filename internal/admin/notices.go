package admin

import (
	"context"

	"github.com/tdf-framework/tdf/internal/notify/notice"
	"github.com/tdf-framework/tdf/redisstate/notices"
)

// MaxNotices is the number of notices that Redis keeps.
const MaxNotices = notices.Max

// Notices returns the last notices (docs/notifications.md), the newest ones first, and at most the given number. It
// leaves out those that another program has written; the error names them, and wraps [notice.ErrUnreadable].
func (a *Admin) Notices(ctx context.Context, most int) ([]notice.Notice, error) {
	return notice.List(ctx, a.redis(), most)
}
