// Package stages keeps the records of the stages of pipelines, and the definitions of their later tasks
// (docs/manager.md, "Pipelines").
package stages

import (
	"bytes"
	"context"
	"encoding/gob"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/lua"
	"github.com/tdf-framework/tdf/redisstate/periodics"
)

// Stages are those of a namespace.
type Stages struct{ s *redisstate.Store }

// Of returns the stages of a store's namespace.
func Of(s *redisstate.Store) Stages { return Stages{s} }

// StageRecords returns the records of stages. The stages are given by the names of their groups. If a record is
// invalid, the result invalid has an error at the same index. A stage that no manager has opened has the zero record.
func (x Stages) StageRecords(ctx context.Context, groups []string) (records []task.StageRecord, invalid []error,
	err error,
) {
	values, err := conn.Ask(ctx, x.s.Conn, "read the records of stages", func(r redis.Cmdable) *redis.SliceCmd {
		return r.HMGet(ctx, x.s.Keys.Pipelines(), groups...)
	})
	if err != nil {
		return nil, nil, err
	}
	records, invalid = make([]task.StageRecord, len(groups)), make([]error, len(groups))
	for i, v := range values {
		if v != nil {
			records[i], invalid[i] = task.ParseStageRecord(conn.Text(v))
		}
	}
	return records, invalid, nil
}

// RemoveStageRecords removes the records of stages, and the stored definitions that they name.
func (x Stages) RemoveStageRecords(ctx context.Context, groups []string) error {
	records, _, err := x.StageRecords(ctx, groups)
	if err != nil {
		return err
	}
	return x.s.Conn.BestEffort(ctx, "remove the records of stages", func(p redis.Pipeliner) {
		for _, r := range records {
			if r.Stored != "" {
				p.Unlink(ctx, x.s.Keys.Definitions(r.Stored))
			}
		}
		p.HDel(ctx, x.s.Keys.Pipelines(), groups...)
	})
}

// keepDefinitions is the time in seconds after which stored definitions expire, if no stage needs them.
const keepDefinitions = 86400

// StoreDefinitions stores a chunk of definitions under a name. The definitions expire after a day, unless a
// [redisstate.StageChange] keeps them. While Redis uses too much memory for new tasks, it stores nothing, and the error
// is [redisstate.ErrNoRoom].
func (x Stages) StoreDefinitions(ctx context.Context, name string, chunk int, definitions []task.Properties) error {
	if err := x.s.CheckRoom(ctx); err != nil {
		return fmt.Errorf("store definitions: %w", err)
	}
	if err := task.CheckNoBlobs(definitions, "tasks of a stage"); err != nil {
		return err
	}
	if err := x.s.Programs.NameDefinitions(ctx, definitions); err != nil {
		return err
	}
	var encoded bytes.Buffer
	if err := gob.NewEncoder(&encoded).Encode(definitions); err != nil {
		return fmt.Errorf("store definitions: %w", err)
	}
	key := x.s.Keys.Definitions(name)
	_, err := x.s.Conn.Run(ctx, "store definitions", lua.Storing, []string{key, key}, []any{
		"HSET", 2, chunk, encoded.String(),
		"EXPIRE", 1, keepDefinitions,
	}, conn.Anything)
	return err
}

// Definitions returns a chunk of stored definitions. If it does not exist, the error is [redisstate.ErrNoDefinitions].
func (x Stages) Definitions(ctx context.Context, name string, chunk int) ([]task.Properties, error) {
	const doing = "read stored definitions"
	encoded, err := conn.Ask(ctx, x.s.Conn, doing, func(r redis.Cmdable) *redis.StringCmd {
		return r.HGet(ctx, x.s.Keys.Definitions(name), strconv.Itoa(chunk))
	})
	if err != nil {
		return nil, err
	}
	if encoded == "" {
		return nil, redisstate.ErrNoDefinitions
	}
	var definitions []task.Properties
	if err := gob.NewDecoder(strings.NewReader(encoded)).Decode(&definitions); err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return definitions, task.ValidateAll(definitions)
}

// RemoveDefinitions removes stored definitions. A failure does no harm, because they expire.
func (x Stages) RemoveDefinitions(ctx context.Context, name string) error {
	return x.s.Conn.BestEffort(ctx, "remove stored definitions",
		func(p redis.Pipeliner) { p.Unlink(ctx, x.s.Keys.Definitions(name)) })
}

// NeededPrograms returns the stored programs of which stages of pipelines or periodics will open tasks, with the name
// of one of them, such as "the stage p/s".
func (x Stages) NeededPrograms(ctx context.Context) (map[string]string, error) {
	needed := map[string]string{}
	err := x.s.Conn.EachField(ctx, "read pipelines", x.s.Keys.Pipelines(), func(group, text string) bool {
		record, _ := task.ParseStageRecord(text) // an invalid record opens no tasks
		for _, sum := range record.StoredPrograms() {
			needed[sum] = "the stage " + group
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	texts, err := periodics.Of(x.s).PeriodicTexts(ctx)
	all, _ := task.ParsePeriodics(texts) // an invalid record opens no tasks
	for _, r := range all {
		for i := range r.Tasks {
			if sum := task.StoredProgram(r.Tasks[i].Source); sum != "" {
				needed[sum] = "the periodic " + r.Name
			}
		}
	}
	return needed, err
}
