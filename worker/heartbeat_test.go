package worker

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// registered returns what Redis stores about the worker w1.
func (w *world) registered() map[string]string {
	w.Helper()
	return expect.Result(w.client().HGetAll(w.Context(), w.cfg.Namespace+":worker:w1").Result()).Value(w)
}

func (w *world) workerState() string {
	w.Helper()
	return w.registered()["state"]
}

func TestHeartbeats(t *testing.T) {
	w := newWorld(t)
	worker := w.worker()
	worker.version = "v1.2.3"
	stop := w.start(worker)
	eventually(t, "the first heartbeat", func() bool { return w.workerState() == presence.WorkerWorking })
	first := w.registered()
	w.timers.beat(t, "another heartbeat, while idle", func() bool { return w.registered()["seen"] > first["seen"] })
	stop()
	delete(first, "seen")
	host := expect.Result(os.Hostname()).Value(t)
	want := map[string]string{
		"host": host, "pid": strconv.Itoa(os.Getpid()), "boot": w.store.Conn.Boot(),
		"version": "v1.2.3", "lease": "1080000", "state": "working", "slots": "1", "runs": "", "shortage": "", "runner": "", "queues": "", "tags": "", "handlers": "", "group": "", "resources": "", "resources_used": "",
		"remember": "3240000",
		"process":  identity(),
	}
	expect.Equal(t, cmp.Diff(want, first), "")
}

func TestIsGone(t *testing.T) {
	self := identity()
	expect.MustTrue(t, self != "", "this process has no identity")
	words := strings.Fields(self)
	ended := exec.Command("true")
	must(t, ended.Run())
	for process, want := range map[string]bool{
		self: false,
		"":   false,
		strings.Join([]string{words[0], words[1], words[2], "1"}, " "):                                   true, // another process has the PID now
		strings.Join([]string{words[0], words[1], strconv.Itoa(ended.Process.Pid), "1"}, " "):            true,
		strings.Join([]string{"another-machine", words[1], strconv.Itoa(ended.Process.Pid), "1"}, " "):   false,
		strings.Join([]string{words[0], "another-container", strconv.Itoa(ended.Process.Pid), "1"}, " "): false,
	} {
		expect.Equal(t, isGone(process), want, process, "gone")
	}
}

// A starting worker ends the processes that an earlier worker of its name left. It finds them by
// the variable TDF_DIR in their environment.
func TestStartEndsLeftProcesses(t *testing.T) {
	w := newWorld(t)
	worker := w.worker()
	left := exec.Command("sleep", "1000")
	left.Env = []string{"TDF_DIR=" + worker.rounds() + "/7"}
	must(t, left.Start())
	ended := make(chan error, 1)
	go func() { ended <- left.Wait() }()
	must(t, os.MkdirAll(worker.rounds()+"/7/files", 0o755))
	stop := w.start(worker)
	expect.Fails(t, <-ended, "", "the process ended by itself")
	stop()
	w.logged("ended processes that an earlier worker of this name had left running")
	_, err := os.Stat(worker.rounds())
	expect.True(t, os.IsNotExist(err), "the directory of rounds still exists", err)
}

// hangingStart returns a worker whose start hangs, as if old processes did not end. The channel hangs is closed when the
// start hangs.
func (w *world) hangingStart() (worker *Worker, hangs <-chan struct{}) {
	worker = w.worker()
	sweeping := make(chan struct{})
	worker.endLeftovers = func(ctx context.Context, _ string, _ *slog.Logger) int {
		close(sweeping)
		<-ctx.Done()
		return 0
	}
	return worker, sweeping
}

// A worker whose start takes longer than its lease keeps its name.
func TestAWorkerThatStartsKeepsItsName(t *testing.T) {
	w := newWorld(t)
	worker, hangs := w.hangingStart()
	stop := w.start(worker)
	<-hangs
	first := w.registered()
	w.timers.beat(t, "another heartbeat", func() bool { return w.registered()["seen"] > first["seen"] })
	expect.Equal(t, w.workerState(), presence.WorkerStarting, "the worker")
	stop()
	expect.Equal(t, w.workerState(), presence.WorkerGone, "at the end the worker")
}

// A starting worker stops if another worker takes its name. It changes nothing that belongs to the other worker.
func TestAWorkerThatLosesItsNameWhileItStarts(t *testing.T) {
	w := newWorld(t)
	id := w.open("")
	worker, hangs := w.hangingStart()
	theirs := filepath.Join(worker.rounds(), "1")
	must(t, os.MkdirAll(theirs, 0o755))
	done := make(chan error, 1)
	go func() { done <- worker.Run(t.Context()) }()
	<-hangs

	other := w.connect(redistest.Shared(t))
	info := presence.WorkerInfo{Name: "w1", Host: "elsewhere", Lease: 3600, State: presence.WorkerWorking}
	_, _, err := other.Presence.TakeName(t.Context(), info, presence.PriorOwner{Gone: w.store.Conn.Boot()})
	must(t, err)
	c := expect.Result(other.Claim(t.Context(), redisstate.ClaimParams{Worker: "w1", Most: 1, Lease: 3600})).Value(t)
	w.timers.beat(t, "the loss of the name", func() bool { return strings.Contains(w.log.String(), "another worker has taken the name") })
	var taken *presence.NameTakenError
	if err := <-done; !errors.As(err, &taken) || taken.Host != "elsewhere" {
		t.Errorf("got %v", err)
	}
	now := expect.Result(other.Now(t.Context())).Value(t)
	due := expect.Result(other.DueTasks(t.Context(), now, 10)).Value(t)
	expect.Len(t, c.Claims, 1, "task", id)
	expect.Len(t, due, 0, "task", id)
	expect.Result(os.Stat(theirs)).OK(t, "a directory of the next worker")
	expect.Equal(t, w.registered()["host"], "elsewhere", "the name belongs to")
}

// silentWorker registers a worker w1 on another host. This worker has sent no heartbeat for longer than its lease. The
// function comesBack sends one.
func (w *world) silentWorker(lease task.Seconds) (comesBack func()) {
	w.Helper()
	store := w.connect(redistest.Shared(w))
	info := presence.WorkerInfo{Name: "w1", Host: "elsewhere", Lease: lease, State: presence.WorkerWorking}
	_, _, err := store.Presence.TakeName(w.Context(), info, presence.PriorOwner{})
	must(w, err)
	now := expect.Result(store.Now(w.Context())).Value(w)
	must(w, w.client().HSet(w.Context(), w.cfg.Namespace+":worker:w1", "seen", now.Add(-2*lease).String()).Err())
	return func() {
		expect.Result(store.Presence.WorkerHeartbeat(w.Context(), info)).OK(w)
	}
}

const waitingForName = "the name belongs to a worker that sends no heartbeats: waiting in case only Redis was away"

// Neither worker could reach Redis for some time. Although the second worker reaches Redis again first, the first
// worker keeps the name.
func TestAWorkerThatComesBackKeepsItsName(t *testing.T) {
	w := newWorld(t)
	comesBack := w.silentWorker(1e6)
	worker, done := w.worker(), make(chan error, 1)
	go func() { done <- worker.Run(t.Context()) }()
	eventually(t, "it waits", func() bool { return strings.Contains(w.log.String(), waitingForName) })
	comesBack()
	var taken *presence.NameTakenError
	err := <-done
	expect.MustTrue(t, errors.As(err, &taken), err)
	expect.Equal(t, taken.Host, "elsewhere")
}

func TestAWorkerThatStaysSilentLosesItsName(t *testing.T) {
	w := newWorld(t)
	w.silentWorker(0.2)
	stop := w.start(w.worker())
	eventually(t, "the second worker has the name", func() bool {
		return w.registered()["host"] != "elsewhere" && w.workerState() == presence.WorkerWorking
	})
	stop()
	w.logged(waitingForName)
}

func TestAStopEndsTheWaitForAName(t *testing.T) {
	w := newWorld(t)
	w.silentWorker(1e6)
	ctx, stop := context.WithCancel(t.Context())
	worker, done := w.worker(), make(chan error, 1)
	go func() { done <- worker.Run(ctx) }()
	eventually(t, "it waits", func() bool { return strings.Contains(w.log.String(), waitingForName) })
	stop()
	err := <-done
	if err != nil {
		expect.FailsWith(t, err, context.Canceled)
	}
	expect.Equal(t, w.registered()["host"], "elsewhere", "the name belongs to")
}
