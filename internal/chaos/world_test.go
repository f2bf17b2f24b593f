package chaos

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/program"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/audit"
)

const namespace = "chaos"

// lease is the lease of workers and the grace period, in seconds.
const lease = 2

// A world is a Redis, and the processes that use it.
type world struct {
	*testing.T
	deployment
	plan   plan
	random *rand.Rand
	dir    string
	store  *redisstate.Store // uses no proxy
	ledger *ledger

	servers, workers, managers []*process

	disk *disk // of the first worker; nil without a disk of its own

	steps    []step          // for each fault, what had been done before
	found    []audit.Finding // what the audit has found so far
	leaps    []leap
	archived map[int64]fate // the tasks that were seen in the list archived, as they were then
}

// A step is what had been done when a fault came.
type step struct{ finished, unfinished int }

// newWorld starts a world.
func newWorld(t *testing.T, seed uint64, p plan) *world {
	w := &world{
		T: t, plan: p, random: rand.New(rand.NewPCG(seed, 0)), dir: t.TempDir(), ledger: newLedger(p.ahead),
		archived: map[int64]fate{},
	}
	fsync := []string{"always", "everysec"}[w.random.IntN(2)]
	w.Logf("TDF_SEED=%d, appendfsync %s", seed, fsync)
	t.Cleanup(w.explain)
	w.deployment = p.deploy(t, fsync)
	direct := w.file("direct", w.direct())
	cfg := expect.Result(config.LoadManager(direct)).Value(t)
	w.store = expect.Result(redisstate.Connect(t.Context(), cfg.Redis, namespace, slog.New(slog.DiscardHandler))).Value(t)
	t.Cleanup(func() { w.store.Close() })
	programs := w.prepare(cfg)

	api, token := redistest.FreeAddr(t), w.path("token")
	add := exec.CommandContext(t.Context(), built(t, "tdf"), "--config", direct, "token", "add", "lab", "--role", "worker")
	add.Env = environment()
	expect.NoError(t, os.WriteFile(token, expect.Result(add.Output()).Value(t), 0o600))
	w.add(&w.servers, "server-1", "tdf-server", "")
	w.add(&w.servers, "server-2", "tdf-server", "[http]\nlisten="+api+"\n")
	for _, name := range []string{"worker-1", "worker-2", "worker-3"} {
		w.add(&w.workers, name, "tdf-worker", w.workerSection(name))
	}
	http := w.workerSection("http-worker") + fmt.Sprintf("api=http://%s\napi_token_file=%s\n", api, token)
	w.workers = append(w.workers, &process{
		t: t, name: "http-worker", command: []string{built(t, "tdf-worker"), "http-worker", w.file("http-worker", http)},
	})
	for number, name := range []string{"manager-1", "manager-2"} {
		w.add(&w.managers, name, "tdf", "")
		m := w.managers[number]
		m.env, m.command = []string{managerVariable + "=" + m.command[2]}, []string{expect.Result(os.Executable()).Value(t)}
		m.output = &splitter{line: w.ledger.read}
		m.begin = func() {
			to := m.stdin
			writeLine(to, programs)
			w.ledger.begin(number, func(b batch) { writeLine(to, b) })
		}
		m.end = func() { w.ledger.end(number) }
	}
	for _, p := range w.processes() {
		p.start()
	}
	return w
}

// prepare stores the program and the limit.
func (w *world) prepare(cfg config.Manager) stored {
	m := expect.Result(manager.New(manager.OptionsOf(cfg))).Value(w)
	defer m.Close()
	dir := w.path("program")
	expect.NoError(w, os.Mkdir(dir, 0o755))
	expect.NoError(w, os.WriteFile(filepath.Join(dir, "run.sh"), []byte(script), 0o755))
	pushed := expect.Result(program.Push(w.Context(), m, dir)).Value(w)
	expect.NoError(w, m.Limits().Set(w.Context(), limitKey, task.Limit{AtMost: 2}))
	return stored{pushed.Program, pushed.Source}
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

// file writes a configuration file.
func (w *world) file(name, sections string) string {
	text := fmt.Sprintf("[tdf]\nnamespace=%s\n[server]\noutage_grace=%d\n[log]\nlevel=info\n%s", namespace, lease, sections)
	path := w.path(name + ".cfg")
	expect.NoError(w, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func (w *world) workerSection(name string) string {
	dir := w.path(name)
	expect.NoError(w, os.Mkdir(dir, 0o755))
	if w.disk == nil && canMount() {
		w.disk = newDisk(w, dir)
	}
	return fmt.Sprintf("[worker]\ndirectory=%s\nlease=%d\nconcurrency=2\nkill_grace=0.05\nsleep_after_failure=0\n", dir, lease)
}

// add adds a process that uses Redis.
func (w *world) add(to *[]*process, name, command, sections string) {
	redis, proxies := w.join()
	*to = append(*to, &process{
		t: w, name: name, proxies: proxies,
		command: []string{built(w.T, command), name, w.file(name, redis+sections)},
	})
}

func (w *world) processes() (all []*process) {
	return append(append(append(all, w.servers...), w.workers...), w.managers...)
}

// explain logs what the processes of a failed test wrote last.
func (w *world) explain() {
	if !w.Failed() {
		return
	}
	for _, p := range w.processes() {
		w.Logf("the last lines of %s:\n%s", p.name, p.lastLines())
	}
}

// await waits until n more tasks have finished.
func (w *world) await(n int) {
	w.Helper()
	finished, _ := w.ledger.finished()
	enough := finished + n
	expect.Eventually(w, fmt.Sprintf("%d tasks are finished", enough), func() bool {
		w.checkAlive()
		w.ledger.poke()
		finished, _ = w.ledger.finished()
		return finished >= enough
	}, func() any { return finished })
}

// checkAlive checks that no process has ended because of a fault.
func (w *world) checkAlive() {
	w.Helper()
	for _, p := range w.processes() {
		expect.MustTrue(w, !p.hasEnded(), p.name, "has ended")
	}
}

// watch records the tasks that are archived or that a fault has lost.
func (w *world) watch(fault string) {
	w.Helper()
	gone := w.ledger.lost(fault, func(ids []int64) (found map[int64]bool) {
		w.replicated(func() {
			found = map[int64]bool{}
			for _, t := range w.read(ids) {
				found[t.ID] = t.Task != nil
			}
		})
		return found
	})
	if gone > 0 {
		w.Fatalf("%s has lost task %d, which all replicas had:\n%s", fault, gone, w.nodes())
	}
	var archived []redisstate.Stored
	w.replicated(func() {
		var ids []int64
		for _, id := range expect.Result(w.store.List(w.Context(), task.Archived, "", 0, 1<<30)).Value(w) {
			if _, ok := w.archived[id]; !ok {
				ids = append(ids, id)
			}
		}
		archived = w.read(ids)
	})
	for _, t := range archived {
		w.archived[t.ID] = fateOf(t.Task)
	}
}

// nodes says what the nodes of Redis have, and whom they follow.
func (w *world) nodes() (text string) {
	all := w.primaries()
	if s, ok := w.deployment.(*sentinel); ok {
		for _, node := range s.Nodes {
			all = append(all, redistest.Client(w, redis.Options{Addr: node.Addr, MaxRetries: -1}))
		}
	}
	for _, c := range all {
		info, err := c.Info(w.Context(), "server", "persistence", "replication", "keyspace").Result()
		text += fmt.Sprintln(c.Options().Addr, err, info)
		c.Close()
	}
	return text
}

// audit records what tdf check would find. Times of a clock that was set back are no violation until servers have had
// the time to correct them (docs/guarantees.md, "Clock leaps").
func (w *world) audit() {
	w.Helper()
	var ahead []audit.Finding
	expect.Eventually(w, "servers have corrected times in the future", func() bool {
		ahead = nil
		for _, f := range expect.Result(audit.Of(w.store).Check(w.Context())).Value(w) {
			if f.Repair.Verb == rules.VerbRescore || !f.Repair.Repair { // its entry in due may lie in the future, too
				ahead = append(ahead, f)
			} else {
				w.found = append(w.found, f)
			}
		}
		return len(ahead) == 0
	}, func() any { return ahead })
}

func (w *world) read(ids []int64) []redisstate.Stored {
	w.Helper()
	return expect.Result(w.store.Read(w.Context(), ids, redisstate.Want{Fields: redisstate.Whole | redisstate.Lists})).Value(w)
}

// drain waits until all tasks are archived, and ends all processes. It returns what is known then.
func (w *world) drain() *history {
	w.Helper()
	w.ledger.close()
	var counts task.Counts
	expect.Eventually(w, "all tasks are archived", func() bool {
		w.checkAlive()
		w.ledger.poke()
		counts = expect.Result(w.store.Counts(w.Context())).Value(w)
		return w.ledger.settled() && counts.Total() > 0 && counts[task.Archived] == counts.Total()
	}, func() any { return counts })
	for _, all := range [][]*process{w.workers, w.managers, w.servers} {
		for _, p := range all {
			p.stop()
		}
	}
	return w.history()
}

// history returns what is known of the world.
func (w *world) history() *history {
	w.Helper()
	w.audit()
	h := &history{
		steps: w.steps, batches: w.ledger.opened, callbacks: w.ledger.callbacks, faulty: w.ledger.faulty,
		archived: w.archived, audit: w.found, left: w.left(), setting: w.plan.setting, leaps: w.leaps,
		counts: expect.Result(w.store.Counts(w.Context())).Value(w),
	}
	for ids, err := range w.store.IDs(w.Context(), 500) {
		expect.NoError(w, err)
		for _, t := range w.read(ids) {
			if t.Task != nil {
				h.tasks = append(h.tasks, t)
			}
		}
	}
	for _, use := range expect.Result(w.store.Limits.Limits(w.Context())).Value(w) {
		h.limited += use.Running + use.Waiting
	}
	return h
}

// left returns the directories and processes of rounds that exist.
func (w *world) left() (left []string) {
	left, _ = filepath.Glob(w.path("*/.tdf/.rounds/*/*/*")) // the pattern is valid
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, process := range processes {
		environ, _ := os.ReadFile(process + "/environ")
		if bytes.Contains(append([]byte{0}, environ...), []byte("\x00TDF_DIR="+w.dir)) {
			command, _ := os.ReadFile(process + "/cmdline")
			left = append(left, fmt.Sprintf("%s: %q", process, command))
		}
	}
	return left
}
