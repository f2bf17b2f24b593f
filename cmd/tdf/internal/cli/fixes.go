package cli

import (
	"strings"

	"github.com/tdf-framework/tdf/internal/admin"
)

// stepCommands lists the commands for the steps of fixes. ID stands for the task's id.
var stepCommands = [admin.StepCount]string{
	admin.StepStartServer:    "start tdf-server, or tdf up",
	admin.StepStartWorker:    "start tdf-worker, or tdf up",
	admin.StepListWorkers:    "tdf workers",
	admin.StepResumeWorker:   "tdf drain --undo WORKER",
	admin.StepRaisePriority:  "tdf set ID --priority N",
	admin.StepChangeStart:    "tdf set ID --start-after 0",
	admin.StepChangeSource:   "tdf push DIR, tdf set ID --source SOURCE",
	admin.StepRetry:          "tdf retry ID",
	admin.StepRetryLater:     "tdf retry ID --end-before TIME",
	admin.StepRequeue:        "tdf requeue ID",
	admin.StepEndPause:       "tdf pause, tdf resume",
	admin.StepRaiseLimit:     "tdf limit KEY N",
	admin.StepListLimits:     "tdf limit",
	admin.StepClose:          "tdf close CAMPAIGN",
	admin.StepCancel:         "tdf cancel ID",
	admin.StepCancelOpen:     "tdf cancel --campaign NAME --state open",
	admin.StepRetryCallbacks: "tdf ls --callback failed, tdf retry --callback",
	admin.StepCorrect: "tdf failures, tdf pause --campaign NAME, tdf retry --campaign NAME --program DIR, " +
		"tdf resume --campaign NAME",
	admin.StepExplain:        "tdf ls --state open, tdf explain ID",
	admin.StepListRunning:    "tdf ls --state running",
	admin.StepCheck:          "tdf check",
	admin.StepRemoveFinished: "tdf archive, tdf rm",
	admin.StepRaiseMaxTasks:  "tdf settings max_tasks=N",
	admin.StepChangeSetting:  "tdf settings NAME=VALUE",
	admin.StepListPeriodics:  "tdf periodic",
	admin.StepRemovePeriodic: "tdf periodic rm NAME",
	admin.StepResumePeriodic: "tdf periodic resume NAME",
}

// WithCommands adds the commands of tdf to the text of a fix: "start a server (start tdf-server, or tdf up)". If the
// fix is not for a task, the task's name is "".
func WithCommands(fix admin.Fix, task string) string {
	if len(fix.Steps) == 0 {
		return fix.Text
	}
	var commands []string
	for _, step := range fix.Steps {
		commands = append(commands, stepCommands[step])
	}
	all := strings.Join(commands, ", ")
	if task != "" {
		all = strings.ReplaceAll(all, "ID", task)
	}
	return fix.Text + " (" + all + ")"
}
