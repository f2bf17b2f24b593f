package broker

import (
	"context"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// A report that no replica has confirmed is sent again as it is. Another one could replace it after a failover.
func TestUnconfirmedReport(t *testing.T) {
	var sent []rules.Move
	send := Send(func(_ context.Context, all []*Delivery) ([]redisstate.Outcome, error) {
		sent = append(sent, movesOf(all)...)
		return nil, &conn.UnknownError{Wanted: 1}
	})
	one := &task.Task{ID: 1, State: task.Running, Properties: task.Defaults("p", "", "")}
	d := &Delivery{Task: one, Ending: Ending{Claim: "c", Result: rules.Result{Exit: "0"}}, open: []task.Properties{{}}}
	d.Decide()
	expect.Fails(t, send.Deliver(t.Context(), []*Delivery{d}), "0 of 1 replicas")
	expect.Len(t, sent, 1)
	expect.True(t, !d.Result.Refused, "the round fails")
}
