package admin

import (
	"context"
	"fmt"

	"github.com/tdf-framework/tdf/redisstate"
)

// The severities of diagnoses.
const (
	SeverityOK      = "ok"
	SeverityNotice  = "notice"
	SeverityProblem = "problem" // tasks cannot finish or may be lost, or other people may be able to run programs
)

// A Diagnosis is a finding of [Admin.Diagnose] about one subject.
type Diagnosis struct {
	Severity string `json:"severity"`
	Subject  string `json:"subject"` // redis, server, workers, pause, limit, memory, tasks or clock
	Fact
}

// Diagnose checks Redis and its settings, the server, the workers and the tasks. It returns a diagnosis for each subject that it
// checked. The embedded Redis reports little about itself, so it gets fewer diagnoses.
func (a *Admin) Diagnose(ctx context.Context) ([]Diagnosis, error) {
	s := a.redis()
	v := vitals{redis: a.parts.Config.Redis}
	for _, step := range []func(context.Context, *redisstate.Store, *vitals) error{
		vitalsOfRedis, vitalsOfTasks, vitalsOfWaits, vitalsOfMoves, vitalsOfRuns,
	} {
		if err := step(ctx, s, &v); err != nil {
			return nil, fmt.Errorf("diagnose the namespace: %w", err)
		}
	}
	return v.diagnose(), nil
}
