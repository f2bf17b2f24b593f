package admin

import (
	"context"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

// A dumpValue is a value of the namespace that belongs to no task and no program.
type dumpValue struct {
	Kind redisstate.ValueKind `json:"kind"`
	Name dumpText             `json:"name"`
	Text dumpText             `json:"text"`
}

func (v *dumpValue) value() redisstate.Value {
	return redisstate.Value{Kind: v.Kind, Name: string(v.Name), Text: string(v.Text)}
}

// dumpDefinitions is a chunk of stored definitions that the record of a stage names.
type dumpDefinitions struct {
	Name  string `json:"name"`
	Chunk int    `json:"chunk"`
	Data  []byte `json:"data"`
}

// Values come in this order. Pauses and limits come before the tasks, so that no worker claims a task that is about to
// be paused. Marks and records of stages come after the tasks, so that no manager acts on a group that lacks tasks.
var (
	kindsBefore = []redisstate.ValueKind{redisstate.ValueSetting, redisstate.ValuePause, redisstate.ValueLimit}
	kindsAfter  = []redisstate.ValueKind{redisstate.ValueMark, redisstate.ValueStage}
)

func (d *dump) valuesBefore(ctx context.Context) error { return d.values(ctx, kindsBefore) }
func (d *dump) valuesAfter(ctx context.Context) error  { return d.values(ctx, kindsAfter) }

func (d *dump) values(ctx context.Context, kinds []redisstate.ValueKind) error {
	for _, kind := range kinds {
		for v, err := range d.store.Values(ctx, kind) {
			if err == nil {
				err = d.value(ctx, v)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// value writes a value. Before the record of a stage, it writes the definitions that the record names.
func (d *dump) value(ctx context.Context, v redisstate.Value) error {
	if err := v.Validate(); err != nil {
		d.parts.Log.Warn("a value of the namespace is invalid; the dump leaves it out", "why", err)
		return nil
	}
	if v.Kind == redisstate.ValueMark && v.Since() > d.begun {
		d.parts.Log.Warn("a group was closed during the dump; the dump leaves its mark out", "group", v.Name)
		return nil
	}
	if v.Kind == redisstate.ValueStage {
		record, _ := tdf.ParseStageRecord(v.Text)
		if err := d.definitions(ctx, record); err != nil {
			return err
		}
	}
	d.done.Values++
	return d.encoder.Encode(dumpLine{Value: &dumpValue{v.Kind, dumpText(v.Name), dumpText(v.Text)}})
}

// definitions writes the stored definitions that a record names. The chunks before record.Done no longer exist.
func (d *dump) definitions(ctx context.Context, record tdf.StageRecord) error {
	if record.Stored == "" {
		return nil
	}
	stored, err := d.store.DefinitionChunks(ctx, record.Stored)
	last := min(record.Done+stored, record.Chunks) // another program may have written the record
	for chunk := record.Done; chunk < last; chunk++ {
		if err == nil {
			err = d.chunk(ctx, record.Stored, chunk)
		}
	}
	return err
}

func (d *dump) chunk(ctx context.Context, name string, chunk int) error {
	data, err := d.store.EncodedDefinitions(ctx, name, chunk)
	if err != nil || data == nil {
		return err
	}
	if _, err := redisstate.DecodeDefinitions(data); err != nil {
		d.parts.Log.Warn("a value of the namespace is invalid; the dump leaves it out", "why", err)
		return nil
	}
	d.done.Values++
	return d.encoder.Encode(dumpLine{Definitions: &dumpDefinitions{name, chunk, data}})
}
