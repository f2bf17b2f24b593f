package worker

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/worker/process"
	"github.com/tdf-framework/tdf/internal/worker/resources"
)

// newEach returns a Worker for each namespace of a configuration. Each has slots, resources and, if there are several,
// a working directory of its own.
func newEach(name, hostname string, cfg config.Worker, o options) ([]*Worker, error) {
	s := &shared{
		occupancy: occupancy{changed: make(signal, 1)}, after: o.timers, answer: answerBound,
		leaveBound: leaveBound, claimGap: claimGap, endLeftovers: process.Sweep,
	}
	if s.after == nil {
		s.after = time.After
	} else {
		s.answer, s.leaveBound = 20*time.Hour, time.Hour+time.Minute
	}
	s.noGrace, s.endGrace = context.WithCancel(context.Background())
	each, first := cfg.Each(), 0
	machine, files := resources.Here(), openFiles()/uint64(len(each))
	for _, one := range each {
		w := &Worker{options: o, shared: s, name: name, hostname: hostname, cfg: one, log: o.log, first: first}
		w.drain.changed = make(signal, 1)
		if len(each) > 1 {
			w.part = fileName(one.Namespace)
			w.cfg.Directory = filepath.Join(cfg.Directory, w.part)
			w.log = o.log.With("namespace", one.Namespace)
		}
		if !w.inProcess() {
			w.limitSlots(files)
		}
		w.offerResources(machine, files)
		w.offer = w.newOffer()
		w.news = make(signal, 1)
		w.shortages = newShortages(w.name, w.haveNews)
		if w.store != nil {
			w.broker = w.newBroker(w.store)
		}
		first += w.slots()
		s.all = append(s.all, w)
	}
	return s.all, nil
}

// runAll runs the Workers of all namespaces. They stop together: when ctx ends, when one of them ends with an error,
// and when all have been idle for the configured time. It returns the first error. end ends ctx.
func (w *Worker) runAll(ctx context.Context, end func()) (err error) {
	var running, idle sync.WaitGroup
	var once sync.Once
	for _, one := range w.all {
		w.occupancy.add(1) // a worker that starts is not idle
		started := sync.OnceFunc(func() { w.occupancy.add(-1) })
		running.Go(func() {
			failed := one.run(ctx, started)
			if failed != nil {
				once.Do(func() { err = one.named(failed) })
				end()
			}
		})
	}
	idle.Go(func() { w.endWhenIdle(ctx, end) })
	running.Wait()
	end()
	idle.Wait()
	return err
}

// named returns err with the namespace, if there are several.
func (w *Worker) named(err error) error {
	if w.part == "" {
		return err
	}
	return fmt.Errorf("namespace %s: %w", w.cfg.Namespace, err)
}

// fileName returns a namespace as the name of a directory.
func fileName(ns string) string {
	name := strings.ReplaceAll(url.QueryEscape(ns), ".", "%2E")
	if len(name) > 200 { // file systems allow 255 bytes
		name = fmt.Sprintf("%x", sha256.Sum256([]byte(ns)))
	}
	return name
}
