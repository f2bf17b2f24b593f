package dashboard

import (
	"context"

	"github.com/tdf-framework/tdf/admin"
)

// diagnoses returns what tdf doctor says. It is expensive to find out, so all pages share it.
func (d *Dashboard) diagnoses(ctx context.Context) ([]admin.Diagnosis, error) {
	return recent(ctx, &d.facts, "diagnose", diagnoseEvery, func() ([]admin.Diagnosis, error) {
		return d.admin.Diagnose(ctx)
	})
}

func loadDoctor(ctx context.Context, v *visit) (any, error) { return v.dashboard.diagnoses(ctx) }
