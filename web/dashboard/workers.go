package dashboard

import (
	"context"

	"github.com/tdf-framework/tdf/admin"
)

func loadWorkers(ctx context.Context, v *visit) (any, error) {
	return v.dashboard.admin.Workers(ctx)
}

func drainWorker(ctx context.Context, v *visit) (string, error) {
	return "", admin.New(v.manager).Drain(ctx, v.path("name"))
}

func resumeWorker(ctx context.Context, v *visit) (string, error) {
	return "", admin.New(v.manager).Resume(ctx, v.path("name"))
}
