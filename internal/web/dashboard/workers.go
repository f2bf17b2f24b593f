package dashboard

import (
	"context"

	"github.com/tdf-framework/tdf/internal/admin"
)

func loadWorkers(ctx context.Context, v *visit) (any, error) {
	return v.place().admin.Workers(ctx)
}

func changeWorker(change func(*admin.Admin, context.Context, string) error) func(context.Context, *visit) (string,
	error) {
	return func(ctx context.Context, v *visit) (string, error) {
		return "", change(admin.New(v.actingHere()), ctx, v.path("name"))
	}
}
