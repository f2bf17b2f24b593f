package cmd_test

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/expect"
)

// shortRuns is a short program that sometimes leaves a process behind. With the input "long", it runs until the test has
// killed the worker for the last time.
const shortRuns = `#!/bin/sh
case $1 in
long) until [ -e ../killed ]; do sleep 0.1; done ;;
*0) setsid sleep 1000 & ;;
*5) sleep 1000 & ;;
*7) setsid sh -c 'trap "" TERM; while :; do sleep 1000; done' & ;;
esac
echo "$1"
`

// A worker with eight slots runs many short programs. The test kills and restarts the worker several times. Every task succeeds, no
// round has two results, and no process or directory is left.
func TestSoakKilledWorkers(t *testing.T) {
	tasks, kills := 200, 3
	if os.Getenv("TDF_SOAK") != "" {
		tasks, kills = 10_000, 20
	}
	s := newSite(t)
	s.program("p", shortRuns)
	inputs := make([]string, tasks)
	for i := range inputs {
		inputs[i] = strconv.Itoa(i)
	}
	inputs[0] = "long"
	ids := s.open(inputs...)
	s.server()
	began, lost := time.Now(), 0
	worker := s.eightSlots()
	for i := range kills {
		enough := int64((i + 1) * tasks / (kills + 1))
		eventually(t, fmt.Sprintf("%d tasks are finished", enough), func() bool {
			counts := expect.Result(s.store.Counts(t.Context())).Value(t)
			return counts.Waiting() >= enough
		})
		worker.kill()
		worker = s.eightSlots()
	}
	must(t, os.WriteFile(s.path("killed"), nil, 0o644))
	for i, task := range s.succeeded(ids) {
		lost += task.Losses
		expect.Equal(t, task.Losses, task.Round)
		expect.Equal(t, task.LastOutput(), inputs[i]+"\n")
	}
	t.Logf("%d tasks, %d kills, %d rounds lost, %.1f s", tasks, kills, lost, time.Since(began).Seconds())
	expect.True(t, lost != 0, "no round was lost, so the worker was always idle when it was killed")
	worker.signal(syscall.SIGTERM)
	worker.exits(0, "msg=stopped")
	s.nothingRemains()
	_, err := os.Lstat(s.path(".tdf/.rounds"))
	expect.True(t, os.IsNotExist(err), "the directory of rounds still exists", err)
}

// eightSlots starts the worker w with eight slots, and waits until it claims tasks.
func (s *site) eightSlots() *process {
	s.Helper()
	p := s.worker("w", "concurrency=8\nkill_grace=0.05\nlease=10000\n") // the next one of the name gives up the claims
	p.logs("msg=working")
	return p
}
