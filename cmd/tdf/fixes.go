package main

import (
	"fmt"
	"strings"
)

// fixCommands lists fixes that package admin suggests, each with the commands that carry out the fix. ID stands for the
// task's id. If one fix begins with the text of another fix, the longer fix comes first.
var fixCommands = []struct{ fix, command string }{
	{"start a server", "start tdf-server, or tdf up"},
	{"start a worker", "start tdf-worker, or tdf up"},
	{"change the task's start_after", "tdf set ID --start-after 0"},
	{"retry the task with a later end_before", "tdf retry ID --end-before TIME"},
	{"retry the task", "tdf retry ID"},
	{"retry it with a later end_before", "tdf retry ID --end-before TIME"},
	{"end the pause", "tdf pause, tdf resume"},
	{"cancel the open tasks of one of these campaigns", "tdf cancel --campaign NAME --state open"},
	{"close the campaign", "tdf close CAMPAIGN"},
	{"raise the limit", "tdf limit KEY N"},
	{"list the limits", "tdf limit"},
	{"resume ", "tdf drain --undo WORKER"},
	{"pause the campaign, correct the program", "tdf failures, tdf pause --campaign NAME, tdf retry --campaign NAME --program DIR, tdf resume --campaign NAME"},
	{"find out why the program fails on", "tdf failures"},
	{"find out why the program fails, or cancel", "tdf failures, tdf watch CAMPAIGN --stop-after N"},
	{"archive and remove finished tasks", "tdf archive, tdf rm"},
	{"raise max_tasks", "tdf settings max_tasks=N"},
	{"change the setting", "tdf settings NAME=VALUE"},
	{"load the same dump again", "tdf load FILE"},
	{"explain one of the open tasks", "tdf ls --state open, tdf explain ID"},
	{"list the running tasks", "tdf ls --state running"},
	{"requeue the task", "tdf requeue ID"},
	{"store the program, and change the source", "tdf push DIR, tdf set ID --source SOURCE"},
	{"check their machines and processes", "tdf workers"},
	{"wait for the server's audit", "tdf check"},
}

// withCommands adds the commands of tdf to a fix: "start a server (start tdf-server, or tdf up)". If the fix is not for
// a task, the id is 0.
func withCommands(fix string, id int64) string {
	var commands []string
	rest := fix
	for _, c := range fixCommands {
		if before, after, found := strings.Cut(rest, c.fix); found {
			commands, rest = append(commands, c.command), before+after
		}
	}
	if len(commands) == 0 {
		return fix
	}
	all := strings.Join(commands, ", ")
	if id > 0 {
		all = strings.ReplaceAll(all, "ID", fmt.Sprint(id))
	}
	return fix + " (" + all + ")"
}
