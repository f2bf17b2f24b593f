package callbacks

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// A Failure is the record of a callback that has failed (docs/manager.md, "Callbacks"). It counts as long as its task
// has this state and this round.
type Failure struct {
	Task     int64      `json:"-"`
	State    task.State `json:"state"`
	Round    int        `json:"round"`
	Attempts int        `json:"attempts"`
	At       task.Time  `json:"at"`                 // when the last attempt failed
	Manager  string     `json:"manager"`            // the manager of the last attempt
	Error    string     `json:"error"`              // of the last attempt, with its stack if it panicked
	GivenUp  bool       `json:"given_up,omitempty"` // whether no manager calls the callback again
}

// IsOf reports whether the record is about the task as it is now.
func (f *Failure) IsOf(t *task.Task) bool {
	return t != nil && f.Attempts > 0 && f.State == t.State && f.Round == t.Round
}

// mostError is the largest length of an error in a record, in bytes. It has room for the first calls of a stack.
const mostError = 2000

// SayFailure stores the record of a failed callback.
func (s Callbacks) SayFailure(ctx context.Context, f Failure) error {
	f.Error = strings.ToValidUTF8(f.Error[:min(len(f.Error), mostError)], "")
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return s.Conn.BestEffort(ctx, "store that a callback failed", func(p redis.Pipeliner) {
		p.HSet(ctx, s.Conn.Keys.Callbacks(), f.Task, text)
		if f.GivenUp {
			p.ZAdd(ctx, s.Conn.Keys.CallbacksFailed(), redis.Z{Score: float64(f.At), Member: f.Task})
		}
	})
}

// Failures returns the records of tasks, in the order of the ids. Without a record, Attempts is 0.
func (s Callbacks) Failures(ctx context.Context, ids ...int64) ([]Failure, error) {
	all := make([]Failure, len(ids))
	if len(ids) == 0 {
		return all, nil
	}
	texts, err := conn.Ask(ctx, s.Conn, "read which callbacks failed",
		func(r redis.Cmdable) *redis.SliceCmd { return r.HMGet(ctx, s.Conn.Keys.Callbacks(), fieldsOf(ids)...) })
	for i, text := range texts {
		all[i] = failureOf(text)
		all[i].Task = ids[i]
	}
	return all, err
}

// failureOf reads a record. A record that is missing or is not JSON has no attempts.
func failureOf(value any) (f Failure) {
	text, _ := value.(string)
	if json.Unmarshal([]byte(text), &f) != nil {
		return Failure{}
	}
	return f
}

func fieldsOf(ids []int64) []string {
	fields := make([]string, len(ids))
	for i, id := range ids {
		fields[i] = strconv.FormatInt(id, 10)
	}
	return fields
}

// mostFields is the largest number of fields in one command, so that Redis has time for other clients.
const mostFields = 1000

// EndFailures removes the records of tasks.
func (s Callbacks) EndFailures(ctx context.Context, ids ...int64) error {
	for some := range slices.Chunk(fieldsOf(ids), mostFields) {
		err := s.Conn.Pipeline(conn.Unacknowledged(ctx), "remove the records of failed callbacks", s.endFailures(ctx, some))
		if err != nil {
			return err
		}
	}
	return nil
}

func (s Callbacks) endFailures(ctx context.Context, tasks []string) func(redis.Pipeliner) {
	return func(p redis.Pipeliner) {
		p.HDel(ctx, s.Conn.Keys.Callbacks(), tasks...)
		p.ZRem(ctx, s.Conn.Keys.CallbacksFailed(), tasks)
	}
}

// GivenUp returns the ids of tasks whose callbacks are not called again, the oldest failures first, at most the given
// number, beginning with the entry offset. Some of the tasks may have changed since; [Failure.IsOf] tells.
func (s Callbacks) GivenUp(ctx context.Context, offset, most int64) ([]int64, error) {
	members, err := conn.Ask(ctx, s.Conn, "list the failed callbacks", func(r redis.Cmdable) *redis.StringSliceCmd {
		return r.ZRange(ctx, s.Conn.Keys.CallbacksFailed(), offset, offset+most-1)
	})
	return conn.IDsOf(members), err
}

// CountGivenUp returns how many entries GivenUp has.
func (s Callbacks) CountGivenUp(ctx context.Context) (int64, error) {
	return conn.Ask(ctx, s.Conn, "count the failed callbacks",
		func(r redis.Cmdable) *redis.IntCmd { return r.ZCard(ctx, s.Conn.Keys.CallbacksFailed()) })
}

// retries is the field that counts the calls of RetryCallbacks.
const retries = "retries"

// RetryCallbacks makes managers call the callbacks of these tasks again.
func (s Callbacks) RetryCallbacks(ctx context.Context, ids ...int64) error {
	for some := range slices.Chunk(fieldsOf(ids), mostFields) {
		err := s.Conn.Write(ctx, "say that callbacks are called again", func(p redis.Pipeliner) {
			s.endFailures(ctx, some)(p)
			p.HIncrBy(ctx, s.Conn.Keys.Callbacks(), retries, 1)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Retries returns a text that changes with each call of RetryCallbacks.
func (s Callbacks) Retries(ctx context.Context) (string, error) {
	return conn.Ask(ctx, s.Conn, "read whether callbacks are called again",
		func(r redis.Cmdable) *redis.StringCmd { return r.HGet(ctx, s.Conn.Keys.Callbacks(), retries) })
}

// ScanFailures returns some records, and the cursor for the next call. A walk begins and ends with the cursor 0.
func (s Callbacks) ScanFailures(ctx context.Context, cursor uint64) (some []Failure, next uint64, err error) {
	var pairs []string
	err = s.Conn.UntilAnswered(ctx, func(context.Context) (err error) {
		pairs, next, err = s.Conn.Redis.HScan(ctx, s.Conn.Keys.Callbacks(), cursor, "", 100).Result()
		return err
	})
	for i := 0; i+1 < len(pairs); i += 2 {
		if ids := conn.IDsOf(pairs[i : i+1]); len(ids) == 1 {
			f := failureOf(pairs[i+1])
			f.Task = ids[0]
			some = append(some, f)
		}
	}
	return some, next, conn.Failed("read which callbacks failed", err)
}
