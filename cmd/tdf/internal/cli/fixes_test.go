package cli

import (
	"testing"

	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/expect"
)

func TestStepsHaveCommands(t *testing.T) {
	for step, command := range stepCommands {
		expect.NotEqual(t, command, "", step)
	}
}

func TestWithCommands(t *testing.T) {
	for want, fix := range map[string]admin.Fix{
		"wait":                         {Text: "wait"},
		"retry the task (tdf retry 7)": {Text: "retry the task", Steps: []admin.Step{admin.StepRetry}},
		"a, or b (tdf close CAMPAIGN, tdf requeue 7)": {Text: "a, or b", Steps: []admin.Step{admin.StepClose, admin.StepRequeue}},
	} {
		expect.Equal(t, WithCommands(fix, "7"), want)
	}
}
