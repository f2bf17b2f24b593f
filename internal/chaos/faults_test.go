package chaos

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

// A fault is a way to break a world.
type fault struct {
	name string
	wide bool // it concerns all of Redis; of such faults, only one happens at a time
	// The fault lasts for at least the first time, and at most the second one, in tenths of a second.
	least, most int
	// begin breaks the world. It returns what it broke, and a function that heals it, or nil.
	begin func(w *world) (what string, heal func())
}

// ofProcesses are the faults of processes and their links.
var ofProcesses = []fault{
	{"kill a worker", false, 0, 15, killOne(func(w *world) []*process { return w.workers })},
	{"kill a server", false, 0, 15, killOne(func(w *world) []*process { return w.servers })},
	{"kill a manager", false, 0, 15, killOne(func(w *world) []*process { return w.managers })},
	// longer than the lease
	{"stop a worker", false, 10*lease + 5, 20 * lease, stopOne(func(w *world) []*process { return w.workers })},
	{"stop a server", false, 10*lease + 5, 20 * lease, stopOne(func(w *world) []*process { return w.servers })},
	{"stop a manager", false, 5, 20 * lease, stopOne(func(w *world) []*process { return w.managers })},
	{"lose replies", false, 3, 15, onLinks(func(w *world, p *redistest.Proxy) { p.DropReplies(w.few(), redistest.Scripts) })},
	{"truncate replies", false, 3, 15, onLinks(func(w *world, p *redistest.Proxy) { p.TruncateReplies(w.few(), redistest.Scripts) })},
	{"lose commands", false, 3, 15, onLinks(func(w *world, p *redistest.Proxy) { p.DropCommands(w.few(), redistest.Scripts) })},
	{"cut links", false, 0, 5, onLinks(func(_ *world, p *redistest.Proxy) { p.Cut() })},
	{"part", false, 5, 40, onLinks(func(_ *world, p *redistest.Proxy) { p.Refuse(); p.Cut() })},
	{"hang links", false, 5, 70, onLinks(func(_ *world, p *redistest.Proxy) { p.Hang() })}, // clients wait for 5 s
	{"delay links", false, 10, 30, onLinks(func(w *world, p *redistest.Proxy) { p.Delay(w.tenths(1, 3)) })},
	{"slow links", false, 10, 40, onLinks(func(w *world, p *redistest.Proxy) { p.Limit(2000 * w.few()) })},
	killCall,
}

// killCall kills a process at a call of a script. It happens alone, because it waits for the call.
var killCall = fault{"kill at a call", false, 0, 15, killAtCall}

// Faults of Redis.
var (
	killRedis    = fault{"kill Redis", true, 0, 15, func(w *world) (string, func()) { w.kill(); return "", w.heal }}
	stopRedis    = fault{"stop Redis", true, 5, 30 * lease, func(w *world) (string, func()) { w.pause(); return "", w.heal }}
	flushScripts = fault{"flush scripts", true, 0, 0, onPrimaries(func(w *world, r *redis.Client) error {
		return r.ScriptFlush(w.Context()).Err()
	})}
	killClients = fault{"kill clients", true, 0, 0, onPrimaries(func(w *world, r *redis.Client) error {
		return r.ClientKillByFilter(w.Context(), "TYPE", "normal", "SKIPME", "yes").Err()
	})}
	busyScript = fault{"busy script", true, 5, 20, busy}
	fullMemory = fault{"full memory", true, 10, 30, full}

	leapClock = fault{"leap of the clock", true, 10, 60, func(w *world) (string, func()) {
		return w.deployment.(*single).leap(w)
	}}
	fullDisk = fault{"full disk of Redis", true, 5, 30, func(w *world) (string, func()) {
		disk := w.deployment.(*single).disk
		disk.fill(w.random.IntN(100_000))
		return "", func() {
			disk.empty()
			w.heal()
			w.rewriteFile()
		}
	}}
	fullDiskOfWorker = fault{"full disk of a worker", false, 5, 30, func(w *world) (string, func()) {
		w.disk.fill(w.random.IntN(100_000))
		return w.workers[0].name, w.disk.empty
	}}
)

// rewriteFile lets Redis write its file anew, because a full disk may have damaged it (docs/operations.md, "A full
// disk").
func (w *world) rewriteFile() {
	w.Helper()
	c := w.primaries()[0]
	defer c.Close()
	asked, info := false, ""
	expect.Eventually(w, "Redis has written its file anew", func() bool {
		info = c.Info(w.Context(), "persistence").Val() // "" while Redis starts
		switch {
		case !strings.Contains(info, "\naof_rewrite_in_progress:0") || !strings.Contains(info, "\naof_rewrite_scheduled:0"):
			return false
		case asked && strings.Contains(info, "\naof_last_bgrewrite_status:ok"):
			return true
		}
		asked = c.BgRewriteAOF(w.Context()).Err() == nil
		return false
	}, func() any { return info })
}

// few draws a number from 1 to 10.
func (w *world) few() int { return 1 + w.random.IntN(10) }

// tenths draws a time in tenths of a second.
func (w *world) tenths(least, most int) time.Duration {
	return time.Duration(least+w.random.IntN(most-least+1)) * time.Second / 10
}

func killOne(of func(*world) []*process) func(*world) (string, func()) {
	return func(w *world) (string, func()) {
		p := pick(w, of(w))
		p.kill()
		return p.name, p.resume
	}
}

func stopOne(of func(*world) []*process) func(*world) (string, func()) {
	return func(w *world) (string, func()) {
		p := pick(w, of(w))
		p.signal(syscall.SIGSTOP)
		return p.name, p.resume
	}
}

// callsOf returns the scripts whose calls are the named points at which a process is killed.
func (w *world) callsOf(p *process) []*lua.Script {
	switch {
	case slices.Contains(w.servers, p):
		return []*lua.Script{lua.Unhold} // in each round; most moves are those of workers
	case slices.Contains(w.workers, p):
		return []*lua.Script{lua.Claim, lua.Move, lua.Heartbeat}
	}
	return []*lua.Script{lua.TransactOpening, lua.Move, lua.Transact}
}

// killAtCall kills a process when it calls a script: before Redis gets the call, or after Redis has run the script.
func killAtCall(w *world) (string, func()) {
	p := pick(w, w.behindProxies())
	calls := w.callsOf(p)
	call := calls[w.random.IntN(len(calls))]
	hash := call.Of(true, false).Hash()
	match := func(command []string) bool { return len(command) > 1 && command[1] == hash }
	drop, moment := p.proxies[0].DropCommands, "before"
	if w.random.IntN(2) == 1 {
		drop, moment = p.proxies[0].DropReplies, "after"
	}
	p.proxies[0].Then(func() { _ = p.cmd.Process.Kill() }) // the process runs until it is killed here
	drop(1, match)
	expect.Eventually(w, fmt.Sprintf("%s calls %s", p.name, call.Name), func() bool {
		w.ledger.poke()
		return p.hasEnded()
	})
	p.proxies[0].Resume()
	p.markKilled()
	return fmt.Sprintf("%s %s %s", p.name, moment, call.Name), p.resume
}

// behindProxies returns the processes that use Redis.
func (w *world) behindProxies() []*process {
	return append(append(slices.Clone(w.servers), w.workers[:3]...), w.managers...)
}

// pick draws a process that no other fault of the step concerns.
func pick(w *world, of []*process) *process {
	p := of[w.random.IntN(len(of))]
	for p.broken {
		p = of[w.random.IntN(len(of))]
	}
	p.broken = true
	return p
}

// onLinks applies a fault to the links of one process, or of all processes.
func onLinks(do func(*world, *redistest.Proxy)) func(*world) (string, func()) {
	return func(w *world) (string, func()) {
		name := "all"
		all := w.behindProxies()
		if w.random.IntN(3) > 0 {
			all = []*process{all[w.random.IntN(len(all))]}
			name = all[0].name
		}
		var links []*redistest.Proxy
		for _, p := range all {
			links = append(links, p.proxies...)
		}
		for _, l := range links {
			do(w, l)
		}
		return name, func() {
			for _, l := range links {
				l.Resume()
			}
		}
	}
}

// onPrimaries does something on each primary that is over at once.
func onPrimaries(do func(*world, *redis.Client) error) func(*world) (string, func()) {
	return func(w *world) (string, func()) {
		for _, r := range w.primaries() {
			expect.NoError(w, do(w, r))
			r.Close()
		}
		return "", nil
	}
}

// busy runs a script on each primary that ends only when it is killed. So Redis refuses most commands.
func busy(w *world) (string, func()) {
	var heal []func()
	for _, r := range w.primaries() {
		ended := make(chan error, 1)
		go func() { ended <- r.Eval(w.Context(), "while true do end", nil).Err() }()
		expect.Eventually(w, "Redis is busy", func() bool {
			err := r.Ping(w.Context()).Err()
			return err != nil && strings.HasPrefix(err.Error(), "BUSY")
		})
		heal = append(heal, func() {
			expect.NoError(w, r.ScriptKill(w.Context()).Err())
			expect.Fails(w, <-ended, "killed")
			r.Close()
		})
	}
	return "", func() {
		for _, f := range heal {
			f()
		}
	}
}

// full lowers the memory limit of each primary to what the primary just uses.
func full(w *world) (string, func()) {
	all := w.primaries()
	limit := func(of func(*redis.Client) string) {
		for _, r := range all {
			expect.NoError(w, r.ConfigSet(w.Context(), "maxmemory", of(r)).Err())
		}
	}
	more := w.random.IntN(100_000)
	limit(func(r *redis.Client) string {
		info := expect.Result(r.InfoMap(w.Context(), "memory").Result()).Value(w)
		var used int
		expect.Result(fmt.Sscan(info["Memory"]["used_memory"], &used)).OK(w)
		return fmt.Sprint(used + more)
	})
	return fmt.Sprintf("%d bytes above the used ones", more), func() {
		limit(func(*redis.Client) string { return "0" })
		for _, r := range all {
			r.Close()
		}
	}
}

// breakOnce makes one step of the schedule: one fault, or two at the same time. It returns the names of the faults.
func (w *world) breakOnce(deck *deck) (names []string) {
	w.Helper()
	finished, unfinished := w.ledger.finished()
	last := 0
	for _, s := range w.steps {
		last += s.finished
	}
	w.steps = append(w.steps, step{finished - last, unfinished})
	var what []string
	wide := "faults of processes"
	var heal []func()
	var lasts time.Duration
	for _, f := range deck.draw(w) {
		lasts = max(lasts, w.tenths(f.least, f.most))
		target, end := f.begin(w)
		names = append(names, f.name)
		if f.wide {
			wide = f.name
		}
		what = append(what, strings.TrimSpace(f.name+" "+target))
		if end != nil {
			heal = append(heal, end)
		}
	}
	w.Logf("after %d finished, %d unfinished: %s, for %v", finished, unfinished, strings.Join(what, "; "), lasts)
	w.pass(lasts)
	for _, end := range heal {
		end()
	}
	for _, p := range w.processes() {
		p.broken = false
	}
	if wide != leapClock.name { // what the leap has made undecidable is reported until servers have noticed it
		w.audit()
	}
	w.watch(wide)
	return names
}

// pass lets time pass in which a fault lasts. No check depends on it.
func (w *world) pass(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.Context().Done():
	}
}

// A deck has some faults in a random order, again and again.
type deck struct{ all, rest []fault }

func (d *deck) take(w *world) fault {
	if len(d.rest) == 0 {
		d.rest = append(d.rest, d.all...)
		w.random.Shuffle(len(d.rest), func(i, j int) { d.rest[i], d.rest[j] = d.rest[j], d.rest[i] })
	}
	f := d.rest[0]
	d.rest = d.rest[1:]
	return f
}

// draw returns one fault, or two of which at most one concerns all of Redis.
func (d *deck) draw(w *world) []fault {
	drawn := []fault{d.take(w)}
	if w.random.IntN(4) > 0 || len(d.rest) == 0 || drawn[0].wide && d.rest[0].wide ||
		drawn[0].name == killCall.name || d.rest[0].name == killCall.name {
		return drawn
	}
	return append(drawn, d.take(w))
}
