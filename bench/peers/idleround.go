package main

import (
	"time"

	"github.com/tdf-framework/tdf/bench/internal/bars"
	"github.com/tdf-framework/tdf/bench/redisserver"
	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/server"
)

// idleRoundBar compares two rounds of a server: one with many open tasks, and one without tasks. No task is due.
func idleRoundBar() *bar {
	const none, many = "TDF, no tasks", "TDF, large backlog"
	return &bar{
		name: "idle-round", unit: "ms",
		sides: []side{
			{none, redisserver.Shipped, func(t *trial) (figure, error) { return t.idleRound(0) }},
			{many, redisserver.Shipped, func(t *trial) (figure, error) { return t.idleRound(t.backlog) }},
		},
		wants: []want{atMost(2, "× a round without tasks", ratio(many, none))},
	}
}

// idleRound measures the median duration of a server's round while the given number of tasks is open.
func (t *trial) idleRound(open int) (figure, error) {
	s := tdfSystem{}
	if open > 0 {
		if err := t.openAll(s, job{Tasks: open, Batch: 1000}); err != nil {
			return figure{}, err
		}
	}
	cfg, err := config.DefaultServer(namespace)
	if err != nil {
		return figure{}, err
	}
	store, err := redisstate.Connect(t.ctx, redisConfig(t.redis.Port), namespace, discard())
	if err != nil {
		return figure{}, err
	}
	defer store.Close()
	if err := t.sleep(t.warmup); err != nil { // after the tasks were opened, Redis is still busy with its own tables
		return figure{}, err
	}
	one := server.New("server", cfg, store, discard())
	var took []float64
	for range t.rounds {
		began := time.Now()
		done, err := one.RunOnce(t.ctx)
		if err != nil {
			return figure{}, err
		}
		if err := expect("moves of an idle server", done.Total(), 0); err != nil {
			return figure{}, err
		}
		took = append(took, time.Since(began).Seconds()*1000)
	}
	return figure{Value: bars.Median(took)}, s.checkOpened(t, open)
}
