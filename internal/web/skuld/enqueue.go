package skuld

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"time"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/web/wire"
	"github.com/tdf-framework/tdf/manager"
)

type enqueueing struct {
	writing
	Task struct {
		ID           string   `json:"id"` // chosen by the client, so that it can repeat the call; "" for a new one
		Queue        string   `json:"queue"`
		Data         *string  `json:"data"`
		DataBase64   []byte   `json:"data_base64"` // instead of data
		Priority     int      `json:"priority"`
		Dependencies []string `json:"dependencies"`
	} `json:"task"`
}

// enqueue opens a task. A call with the id of a task that exists changes nothing, and has the same answer: a task never
// changes.
func (a *app) enqueue(ctx context.Context, c *wire.Call, in *enqueueing) (any, error) {
	t := &in.Task
	if t.ID == "" {
		t.ID = newID(time.Now())
	}
	switch {
	case !validID().MatchString(t.ID):
		return nil, wire.Invalid("task.id: want 1 to 100 letters, digits, hyphens and underscores")
	case t.Data != nil && t.DataBase64 != nil:
		return nil, wire.Invalid("task: want either data or data_base64")
	case t.Priority < math.MinInt32 || t.Priority > math.MaxInt32:
		return nil, wire.Invalid("task.priority: want a signed integer of 32 bits")
	}
	if t.Data != nil {
		t.DataBase64 = []byte(*t.Data)
	}
	d, err := a.define(ctx, c, in)
	if err != nil {
		return nil, err
	}
	ctx, replicas, err := a.confirmed(ctx, in.writing)
	if err != nil {
		return nil, err
	}
	opened, err := c.Manager.Open(ctx, d)
	if err != nil {
		return nil, err
	}
	owner := c.Token.Owner()
	if o := opened[0]; o.Existing && (o.Program != program || owner != "" && o.Owner != owner) {
		return nil, task.NewError(task.CodeTaken, "another task has the id")
	}
	return written{ID: t.ID, W: nodes(replicas)}, nil
}

func (a *app) define(ctx context.Context, c *wire.Call, in *enqueueing) (d manager.Definition, err error) {
	t := &in.Task
	d = manager.Definition{
		Program: program, Input: inputOf(t.DataBase64), Priority: &t.Priority, Group: group, Owner: c.Token.Owner(),
		CorrelationID: c.ID,
		EndBefore:     manager.NoEnd(), Timeout: manager.NoTimeout, MaxLosses: new(task.MaxCount), Unique: keyPrefix + t.ID,
		UniqueUntil: task.UntilArchived,
	}
	if d.Queue, err = queueOf(c, t.Queue); err != nil || len(t.Dependencies) == 0 {
		return d, err
	}
	d.After = &manager.Dependencies{}
	for _, id := range t.Dependencies {
		of, err := find(ctx, a.store, id, c.Token.Owner(), 1)
		if err != nil {
			return d, fmt.Errorf("dependencies: %w", err)
		}
		d.After.Tasks = append(d.After.Tasks, of.ID)
	}
	return d, nil
}

// queueOf returns the queue of a call, which the token must be for. Without a queue, it is the first one of the token.
func queueOf(c *wire.Call, queue string) (string, error) {
	if queue == "" && len(c.Token.Queues) > 0 {
		queue = c.Token.Queues[0]
	}
	return queue, c.Token.CheckQueue(queue)
}

// newID returns a k-ordered id of 160 bits: the time in milliseconds and random bits.
func newID(now time.Time) string {
	var id [20]byte
	_, _ = rand.Read(id[:])
	binary.BigEndian.PutUint64(id[:8], uint64(now.UnixMilli()))
	return hex.EncodeToString(id[:])
}
