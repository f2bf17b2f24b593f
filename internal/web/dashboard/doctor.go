package dashboard

import (
	"context"

	"github.com/tdf-framework/tdf/internal/admin"
)

// diagnoses returns what tdf doctor says. It is expensive to find out, so all pages share it.
func (v *visit) diagnoses(ctx context.Context) ([]admin.Diagnosis, error) {
	p := v.place()
	return recent(ctx, &v.dashboard.facts, "diagnose "+p.name, diagnoseEvery, func() ([]admin.Diagnosis, error) {
		return p.admin.Diagnose(ctx)
	})
}

func loadDoctor(ctx context.Context, v *visit) (any, error) { return v.diagnoses(ctx) }
