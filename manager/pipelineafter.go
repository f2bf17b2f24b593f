package manager

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// A collector collects the tasks that a function of After opens. If one step cannot open all of them, it stores their
// definitions in Redis.
type collector struct {
	*Manager
	group string // the group of the tasks; "" if the function must not open tasks

	mu      sync.Mutex
	pending []task.Properties // not stored
	bytes   int               // of pending
	name    string            // of the stored definitions; "" if none are stored
	chunks  int               // the number of stored chunks
	stored  int               // the number of definitions in these chunks
	sums    map[string]bool   // the stored programs that these definitions name
	err     error             // the first error
	ended   bool              // whether the function has returned
}

var errLastStage = errors.New("the function after the last stage opens a task; name the next stage in After")

func (c *collector) open(ctx context.Context, definitions []Definition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range definitions {
		if c.err == nil && !c.ended {
			c.err = c.add(ctx, definitions[i:i+1])
		}
	}
}

func (c *collector) add(ctx context.Context, definition []Definition) error {
	if c.group == "" {
		return stageError{errLastStage}
	}
	one, err := c.stageTasks(c.group, definition)
	if err != nil {
		return stageError{err}
	}
	c.pending, c.bytes = append(c.pending, one...), c.bytes+sizeOf(one)
	if len(c.pending) <= MaxStep && c.bytes <= maxStepBytes {
		return nil
	}
	return c.store(ctx)
}

// store stores all pending definitions.
func (c *collector) store(ctx context.Context) error {
	if c.name == "" {
		c.name, c.sums = rand.Text(), map[string]bool{}
	}
	for len(c.pending) > 0 {
		n := redisstate.OpenBatch(c.pending)
		err := c.Manager.in().Stages().StoreDefinitions(ctx, c.name, c.chunks, c.pending[:n])
		switch {
		case errors.Is(err, conn.ErrFull):
			return stageError{err}
		case errors.Is(err, redisstate.ErrNoRoom) && c.chunks > 0: // the definitions themselves may use the memory
			return stageError{fmt.Errorf("%d definitions fit, and then: %v", c.stored, err)}
		}
		if err != nil {
			return err
		}
		c.chunks, c.stored = c.chunks+1, c.stored+n
		for _, d := range c.pending[:n] {
			if sum := task.StoredProgram(d.Source); sum != "" {
				c.sums[sum] = true
			}
		}
		c.pending = c.pending[n:]
	}
	c.pending, c.bytes = nil, 0
	return nil
}

// openNext calls the function after a stage. One step decides that the stage is complete, and opens the tasks of the
// next stage, or keeps their stored definitions.
func (x *pipelineRun) openNext(ctx context.Context, s *stageRun, empty bool) error {
	c := &collector{Manager: x.Manager}
	if s.next != nil {
		c.group = s.next.group
	}
	err := x.decide(ctx, s, c, empty)
	if c.name != "" && hasNoEffect(err) {
		_ = x.in().Stages().RemoveDefinitions(ctx, c.name) // if this fails, they expire
	}
	return err
}

// hasNoEffect reports whether err means that Redis has not carried out a step. After another error, Redis may have done
// so.
func hasNoEffect(err error) bool {
	return errors.As(err, new(stageError)) || errors.Is(err, redisstate.ErrRecordChanged) ||
		errors.Is(err, redisstate.ErrNoRoom)
}

// collect calls the function after a stage. Afterwards, the collector has all definitions, or has stored all of them.
func (x *pipelineRun) collect(ctx context.Context, s *stageRun, c *collector) error {
	failed := callStage(ctx, s.after, &Stage{func(definitions []Definition) { c.open(ctx, definitions) }})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	if failed != nil {
		return stageError{failed}
	}
	if c.err != nil {
		return c.err
	}
	if c.name == "" {
		return nil
	}
	return c.store(ctx)
}

// decide collects the definitions for the next stage, and takes the step.
func (x *pipelineRun) decide(ctx context.Context, s *stageRun, c *collector, empty bool) error {
	if err := x.collect(ctx, s, c); err != nil {
		return err
	}
	u := redisstate.Unit{Open: c.pending, Stage: &redisstate.StageChange{}}
	if empty {
		u.If = redisstate.NewGroup(s.group) // a group without tasks cannot be closed
	} else {
		u.Decide = s.group
	}
	if s.next == nil {
		return x.openChunk(ctx, s, u, task.StageRecord{Phase: task.StageDecided})
	}
	to := task.StageRecord{Phase: task.StageOpened}
	if c.name != "" {
		to = task.StageRecord{Phase: task.StageStored, Chunks: c.chunks, Stored: c.name}
		to.Programs = strings.Join(slices.Sorted(maps.Keys(c.sums)), ",")
		u.Stage.Definitions, u.Stage.Chunks = c.name, c.chunks
	}
	return x.openChunk(ctx, s.next, u, to)
}

// openStored opens tasks whose definitions are stored, in chunks. After a while, it leaves the rest to the next round.
func (x *pipelineRun) openStored(ctx context.Context, s *stageRun) error {
	for begun := time.Now(); x.records[s.index].Phase == task.StageStored && time.Since(begun) < turn; {
		if err := x.openStoredChunk(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func (x *pipelineRun) openStoredChunk(ctx context.Context, s *stageRun) error {
	record := x.records[s.index]
	definitions, err := x.in().Stages().Definitions(ctx, record.Stored, record.Done)
	if errors.Is(err, redisstate.ErrNoDefinitions) {
		return x.missingDefinitions(ctx, s, err)
	}
	if err != nil {
		return stageError{err}
	}
	u := redisstate.Unit{Open: definitions, Stage: &redisstate.StageChange{
		Definitions: record.Stored,
		Opened:      record.Done,
	}}
	next := record
	next.Done++
	if next.Done == next.Chunks {
		next = task.StageRecord{Phase: task.StageOpened}
	}
	return x.openChunk(ctx, s, u, next)
}

// missingDefinitions returns the error for stored definitions that do not exist. If another manager has opened the last
// chunk, and removed the definitions, the error is ErrRecordChanged.
func (x *pipelineRun) missingDefinitions(ctx context.Context, s *stageRun, missing error) error {
	records, _, err := x.in().Stages().StageRecords(ctx, []string{s.group})
	if err != nil {
		return err
	}
	if records[0] != x.records[s.index] {
		return redisstate.ErrRecordChanged
	}
	return stageError{fmt.Errorf("chunk %d: %w", x.records[s.index].Done+1, missing)}
}
