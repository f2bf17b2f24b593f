package chaos

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
)

// kinds are the kinds of the tasks that managers open. The input of a task is its kind and its number. The kind of the
// task with the number n is kinds[n%len(kinds)].
var kinds = []string{"root", "opens", "waits", "flaky", "doomed", "slow", "limited", "limited", "plain", "plain"}

// perBatch is how many tasks come from each batch of len(kinds) tasks, including those that callbacks and programs open.
var perBatch = len(kinds) + 2

// script is the program of all tasks. It prints its input with a checksum.
const script = `#!/bin/sh
echo "$1 $2 $(($2 * 48271 % 2147483647))"
case $1 in
slow) sleep 0.3 ;;
flaky) [ "$TDF_ROUND" -gt 0 ] || exit 1 ;;
doomed) exit 1 ;;
opens) echo "{\"input\": \"child $2\"}" >"$TDF_DIR/open.jsonl" ;;
esac
`

// outputOf returns what the program prints for an input.
func outputOf(input string) string {
	_, number, _ := strings.Cut(input, " ")
	n, _ := strconv.Atoi(number)
	return fmt.Sprintf("%s %d\n", input, n*48271%2147483647)
}

// outcomeOf returns the outcome that a task must have.
func outcomeOf(input string) string {
	if strings.HasPrefix(input, "doomed ") {
		return string(task.Failed)
	}
	return string(task.Succeeded)
}

func inputOf(n int) string { return fmt.Sprintf("%s %d", kinds[n%len(kinds)], n) }

// batchOf returns the number of the first task of the batch to which a task belongs.
func batchOf(input string) int {
	_, number, _ := strings.Cut(input, " ")
	n, _ := strconv.Atoi(number)
	return n - n%len(kinds)
}

// following returns the input of the task that comes from the task with the given input: the callback of a root opens a
// follow-up, and the program of a task of the kind opens opens a child. It returns "" for other inputs.
func following(input string) string {
	kind, number, _ := strings.Cut(input, " ")
	next := map[string]string{"root": "follow", "opens": "child"}[kind]
	if next == "" {
		return ""
	}
	return next + " " + number
}

// A stored program is what definitions of tasks need of it.
type stored struct{ Program, Source string }

const (
	group    = "chaos"
	limitKey = "license"
)

func (s stored) definition(input string) manager.Definition {
	d := manager.Definition{
		Program: s.Program, Source: s.Source, Input: input, Group: group, FailOn: task.FailOnExit,
		MaxLosses: new(1000), MaxFails: new(0), // without a timeout, workers prefetch the tasks
	}
	kind, _, _ := strings.Cut(input, " ")
	switch kind {
	case "flaky":
		d.MaxFails = new(1)
	case "limited":
		d.LimitKey = limitKey
	case "slow":
		d.Timeout = time.Hour
	}
	return d
}

// A batch is a call that opens one task of each kind, or a repetition of this call.
type batch struct {
	First int     // the number of the first task
	Key   string  // the key of OpenOnce, which makes the call safe to repeat; "" for Open
	IDs   []int64 // the ids of the tasks; empty while the outcome is unknown
	Lost  string  // the fault that lost the tasks after the manager had got the ids; "" if they are not lost
}

func (s stored) definitions(b batch) (all []manager.Definition) {
	for i := range kinds {
		d := s.definition(inputOf(b.First + i))
		if kinds[i] == "waits" {
			d.After = &manager.Dependencies{Places: []int{i - 1}}
		}
		all = append(all, d)
	}
	return all
}

// A message is a line that a manager writes: the answer to a call, or the call of a callback.
type message struct {
	Batch    *batch    `json:",omitempty"`
	Error    string    `json:",omitempty"` // the outcome of the batch is unknown
	Callback *callback `json:",omitempty"`
}

// A callback is a task with which a manager has called a callback.
type callback struct {
	ID            int64
	Input, Output string
}
