package admin

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// dumpFormat is the version of the lines that [Admin.Dump] writes (docs/tdf.md, "Dumps").
const dumpFormat = 2

// A dumpLine is one line of a dump. Exactly one of its fields is set.
type dumpLine struct {
	Header  *dumpHeader  `json:"dump,omitempty"` // the first line
	Program *dumpProgram `json:"program,omitempty"`
	Task    *dumpTask    `json:"task,omitempty"`
	End     *Dumped      `json:"end,omitempty"` // the last line

	// Since format 2.
	Value       *dumpValue       `json:"value,omitempty"`
	Definitions *dumpDefinitions `json:"definitions,omitempty"`
}

type dumpHeader struct {
	Format    int      `json:"format"`
	Schema    int      `json:"schema"`
	Namespace string   `json:"namespace"`
	Time      tdf.Time `json:"time"`
	LastID    int64    `json:"last_id"`
}

type dumpProgram struct {
	SHA256  string `json:"sha256"`
	Archive []byte `json:"archive"`
	Pinned  bool   `json:"pinned,omitempty"` // since format 2
}

type dumpTask struct {
	ID      int64               `json:"id"`
	Hash    map[string]dumpText `json:"hash"`
	Odd     [][2]dumpText       `json:"odd,omitempty"` // properties whose names are not valid UTF-8
	Updates []dumpUpdate        `json:"updates,omitempty"`
}

type dumpUpdate struct {
	Round  int      `json:"round"`
	Number int      `json:"number"`
	Time   dumpTime `json:"time"`
	Line   dumpText `json:"line"`
}

// A dumpTime is a number of seconds, or "inf".
type dumpTime tdf.Time

func (t dumpTime) MarshalJSON() ([]byte, error) {
	if tdf.Time(t) == tdf.Never {
		return []byte(`"inf"`), nil
	}
	return []byte(tdf.Time(t).String()), nil
}

func (t *dumpTime) UnmarshalJSON(data []byte) error {
	read, err := tdf.ParseTime(strings.Trim(string(data), `"`))
	*t = dumpTime(read)
	return err
}

// Dumped says how many programs, tasks and other values a dump contains.
type Dumped struct {
	Programs int64 `json:"programs"`
	Tasks    int64 `json:"tasks"`
	Values   int64 `json:"values,omitempty"` // settings, pauses, limits, closed groups, and data of pipelines
}

// A dumpText is encoded as a JSON string, or as {"base64":…} if it is not valid UTF-8.
type dumpText string

type binary struct {
	Base64 []byte `json:"base64"`
}

func (t dumpText) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(t)) {
		return json.Marshal(string(t))
	}
	return json.Marshal(binary{[]byte(t)})
}

func (t *dumpText) UnmarshalJSON(data []byte) error {
	if data[0] != '{' {
		return json.Unmarshal(data, (*string)(t))
	}
	var b binary
	err := json.Unmarshal(data, &b)
	*t = dumpText(b.Base64)
	return err
}

// dumpPage is the number of tasks that Dump reads at once.
const dumpPage = 500

// Dump writes the namespace as JSON lines: its tasks with their outputs and updates, its stored programs, its
// settings, pauses and limits, its closed groups and its pipelines (docs/tdf.md, "Dumps"). Other components may work
// during a dump. The dump of each task is consistent, but different tasks are read at different times. If Load would
// refuse an item, Dump omits it and logs a warning.
func (a *Admin) Dump(ctx context.Context, w io.Writer) (Dumped, error) {
	s := a.redis()
	buffer := bufio.NewWriterSize(w, 1<<16)
	d := &dump{Admin: a, store: s, encoder: json.NewEncoder(buffer), met: map[string]bool{}, named: map[string]bool{}}
	d.encoder.SetEscapeHTML(false)
	err := d.write(ctx)
	if err == nil {
		err = buffer.Flush()
	}
	if err != nil {
		return d.done, fmt.Errorf("dump namespace %s: %w", a.parts.Config.Namespace, err)
	}
	return d.done, nil
}

// A dump is the state of one call of Dump.
type dump struct {
	*Admin
	store   *redisstate.Store
	encoder *json.Encoder
	met     map[string]bool // the programs that Dump has already written or omitted
	named   map[string]bool // the programs that tasks name
	begun   tdf.Time        // by Redis's clock
	done    Dumped
}

func (d *dump) write(ctx context.Context) error {
	now, err := d.store.Now(ctx)
	if err != nil {
		return err
	}
	d.begun = now
	last, err := d.store.LastID(ctx)
	if err != nil {
		return err
	}
	last = min(max(last, 0), redisstate.MaxID) // the counter may be corrupt, so its value is limited
	header := dumpHeader{dumpFormat, conn.Schema, d.parts.Config.Namespace, now, last}
	if err := d.encoder.Encode(dumpLine{Header: &header}); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{d.valuesBefore, d.programs, d.tasks} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	// Tasks may name programs that are not in the list, for example programs that were stored during the dump.
	for _, sha256 := range slices.Sorted(maps.Keys(d.named)) {
		if err := d.program(ctx, sha256, false); err != nil {
			return err
		}
	}
	if err := d.valuesAfter(ctx); err != nil {
		return err
	}
	return d.encoder.Encode(dumpLine{End: &d.done})
}

func (d *dump) programs(ctx context.Context) error {
	programs, err := d.store.Programs(ctx)
	if err != nil {
		return err
	}
	for _, p := range programs {
		if err := d.program(ctx, p.SHA256, p.Pinned); err != nil {
			return err
		}
	}
	return nil
}

// program writes a program, if the dump does not yet contain it. It omits archives that no worker would run.
func (d *dump) program(ctx context.Context, sha256 string, pinned bool) error {
	if d.met[sha256] {
		return nil
	}
	d.met[sha256] = true
	archive, err := d.store.Program(ctx, sha256)
	switch {
	case err != nil:
		return err
	case archive == nil:
		d.parts.Log.Warn("a program is not stored; it is left out", "sha256", sha256)
	case programName(archive) != sha256:
		d.parts.Log.Warn("a stored program differs from the SHA-256 in its name; it is left out", "sha256", sha256)
	case len(archive) > redisstate.MaxProgram:
		d.parts.Log.Warn("a stored program is too large; it is left out", "sha256", sha256)
	default:
		d.done.Programs++
		return d.encoder.Encode(dumpLine{Program: &dumpProgram{sha256, archive, pinned}})
	}
	return nil
}

func (d *dump) tasks(ctx context.Context) error {
	for ids, err := range d.store.IDs(ctx, dumpPage) {
		if err == nil {
			err = d.store.Records(ctx, ids, d.task)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *dump) task(r redisstate.Record) error {
	if err := r.Validate(); err != nil {
		d.parts.Log.Warn("a task is invalid and would not load; the dump leaves it out", "why", err)
		return nil
	}
	if source, err := tdf.ParseSource(r.Hash["source"]); err == nil && source.Scheme == tdf.SchemeRedis {
		d.named[source.SHA256] = true
	}
	t := dumpTask{ID: r.ID, Hash: make(map[string]dumpText, len(r.Hash))}
	for name, value := range r.Hash {
		if utf8.ValidString(name) {
			t.Hash[name] = dumpText(value)
		} else {
			t.Odd = append(t.Odd, [2]dumpText{dumpText(name), dumpText(value)})
		}
	}
	for _, u := range r.Updates {
		t.Updates = append(t.Updates, dumpUpdate{u.Round, u.Number, dumpTime(u.Time), dumpText(u.Line)})
	}
	d.done.Tasks++
	return d.encoder.Encode(dumpLine{Task: &t})
}
