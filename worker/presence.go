package worker

import (
	"context"
	"os"
	"sync"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

// What a worker says that it does (docs/redis.md).
const (
	stateWorking  = "working"
	stateDraining = "draining"
	stateGone     = "gone"
)

// renewal is how long there is between two signs of life.
func (w *Worker) renewal() time.Duration { return w.cfg.Lease / 3 }

func (w *Worker) seen(ctx context.Context, state string) error {
	return w.store.SeenWorker(ctx, redisstate.WorkerInfo{
		Name: w.name, Host: w.host, PID: os.Getpid(), Version: w.Version,
		Lease: tdf.For(w.cfg.Lease), State: state,
	})
}

// register comes before the first claim: servers must know the longest lease there is.
func (w *Worker) register(ctx context.Context) error {
	if err := w.store.NumberWorker(ctx, w.name); err != nil {
		return err
	}
	if err := w.seen(ctx, stateWorking); err != nil {
		return err
	}
	w.log.Info("working", "directory", w.cfg.Directory)
	return nil
}

// announce gives a sign of life every third of the lease, and when the worker is told to stop,
// until the function it returns is called, which gives the last one.
func (w *Worker) announce(told context.Context) (signOff func()) {
	over, end := context.WithCancel(context.WithoutCancel(told))
	var loop sync.WaitGroup
	loop.Go(func() { w.announceUntil(over, told.Done()) })
	return func() {
		end()
		loop.Wait()
		ctx, end := w.outlive(told, answerBound, answerBound)
		defer end(nil)
		ctx, cancel := context.WithTimeout(ctx, answerBound) // bounds also the read of a Redis that hangs
		defer cancel()
		if err := w.seen(ctx, stateGone); err != nil {
			w.log.Warn("the last sign of life could not be given", "error", err)
		}
		w.log.Info("stopped")
	}
}

func (w *Worker) announceUntil(over context.Context, told <-chan struct{}) {
	state := stateWorking
	for {
		select {
		case <-time.After(w.renewal()):
		case <-told:
			told, state = nil, stateDraining
			w.log.Info("told to stop: nothing more is claimed")
		case <-over.Done():
			return
		}
		if err := w.seen(over, state); err != nil && over.Err() == nil {
			w.log.Warn("a sign of life could not be given", "error", err)
		}
	}
}
