package main

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/bench/redisserver"
	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/redisstate"
)

// places lists pairs of a state and an outcome. Each pair has the percentage of the tasks that get this pair.
var places = []struct {
	state   tdf.State
	outcome tdf.State
	percent int
}{
	{tdf.Open, "", 30},
	{tdf.Succeeded, tdf.Succeeded, 40},
	{tdf.Failed, tdf.Failed, 4},
	{tdf.TimedOut, tdf.TimedOut, 1},
	{tdf.Archived, tdf.Succeeded, 23},
	{tdf.Archived, tdf.Failed, 2},
}

// tasksPerCall is the number of tasks that one call stores.
const tasksPerCall = 5000

// fill stores tasks in all states, with typical results. If queues is above 0, the tasks have that many queues. If
// campaigns is above 0, half of the tasks have that many campaigns.
func fill(ctx context.Context, server *redisserver.Server, tasks, queues, campaigns int) error {
	store, err := redisstate.Connect(ctx, config.Redis{Host: "127.0.0.1", Port: server.Port}, namespace,
		slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer store.Close()
	now, err := store.Now(ctx)
	if err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(1, 2))
	for id := 1; id <= tasks; {
		var records []redisstate.Record
		for ; id <= tasks && len(records) < tasksPerCall; id++ {
			at := now.Add(-tdf.Seconds(tasks-id) / 1000)
			records = append(records, redisstate.Record{ID: int64(id), Hash: task(int64(id), at, queues, campaigns,
				random)})
		}
		if _, err := store.Restore(ctx, records...); err != nil {
			return err
		}
	}
	return store.ServerHeartbeat(ctx, "server", now)
}

func idOfFailure(tasks int) int { return tasks/200*100 + 70 }

func task(id int64, at tdf.Time, queues, campaigns int, random *rand.Rand) tdf.Hash {
	place := places[0]
	for _, p := range places {
		if percent := int(id % 100); percent < sum(p.state, p.outcome) {
			place = p
			break
		}
	}
	d := tdf.Defaults(fmt.Sprintf("simulate-%d", id%7),
		"redis:4355a46b19d348dc2f57c046f8ef63d4538ebb936000f3c9ee954a27460dd865", fmt.Sprintf("--seed %d", id))
	d.Group, d.Meta, d.FailOn = "big", fmt.Sprintf(`{"seed":%d}`, id), tdf.FailOnExit
	if campaigns > 0 && id/100%2 == 1 {
		d.Group = fmt.Sprintf("campaign-%05d", id/200%int64(campaigns))
	}
	if queues > 0 {
		d.Queue = queueOf(int(id) / 100 % queues)
	}
	h := tdf.Hash{"id": strconv.FormatInt(id, 10), "log": at.String() + " me@here: open", "0:open": at.String()}
	for _, f := range d.OpenFields(namespace) {
		h[f.Name] = f.Value
	}
	if place.state == tdf.Open {
		return h
	}
	h["state"], h["outcome"] = string(place.state), string(place.outcome)
	seconds := 1 + random.Float64()*20
	for name, value := range map[string]string{
		"worker": fmt.Sprintf("node-%d", random.IntN(40)), "claim": "6LUDPZJJ6YGOPMFICHNV3TF7SD.1",
		"running": at.Add(1).String(), "executed": at.Add(1 + tdf.Seconds(seconds)).String(),
		string(place.state): at.Add(2 + tdf.Seconds(seconds)).String(),
		"seconds":           strconv.FormatFloat(seconds, 'f', 6, 64), "output": fmt.Sprintf("energy %f\nsteps %d\n",
			random.Float64(), random.IntN(1e6)), "error": "", "exit": "0",
	} {
		h["0:"+name] = value
	}
	if place.outcome == tdf.Failed {
		h["0:exit"], h["fails"] = strconv.Itoa(1+random.IntN(4)), "1"
		h["0:error"] = fmt.Sprintf("step %d\nValueError: no convergence of kind %d after %d steps\n", id,
			random.IntN(12), random.IntN(1000))
	}
	return h
}

// sum returns the sum of the percentages in places up to the given state and outcome, inclusive.
func sum(state, outcome tdf.State) int {
	n := 0
	for _, p := range places {
		n += p.percent
		if p.state == state && p.outcome == outcome {
			break
		}
	}
	return n
}
