package manager

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

// dumpFormat is the version of the lines that [Manager.Dump] writes (docs/tdf.md, "Dumps").
const dumpFormat = 1

// A dumpLine is one line of a dump: it has one of these.
type dumpLine struct {
	Header  *dumpHeader  `json:"dump,omitempty"` // the first line
	Program *dumpProgram `json:"program,omitempty"`
	Task    *dumpTask    `json:"task,omitempty"`
	End     *Dumped      `json:"end,omitempty"` // the last line
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
}

type dumpTask struct {
	ID      int64               `json:"id"`
	Hash    map[string]dumpText `json:"hash"`
	Odd     [][2]dumpText       `json:"odd,omitempty"` // properties whose names are no UTF-8
	Updates []dumpUpdate        `json:"updates,omitempty"`
}

type dumpUpdate struct {
	Round  int      `json:"round"`
	Number int      `json:"number"`
	Time   tdf.Time `json:"time"`
	Line   dumpText `json:"line"`
}

// Dumped is how many programs and tasks a dump has.
type Dumped struct {
	Programs int64 `json:"programs"`
	Tasks    int64 `json:"tasks"`
}

// A dumpText is a string of JSON, or where it is no UTF-8 {"base64":…}.
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

// dumpPage is how many tasks are looked for at once.
const dumpPage = 500

// Dump writes the namespace as JSON lines: its tasks, with all that they printed and reported, and the
// programs that are stored in it (docs/tdf.md, "Dumps"). It may be written while work goes on: each task is as it
// was at one moment. Redis is read in pages, and w written as they come.
func (m *Manager) Dump(ctx context.Context, w io.Writer) (Dumped, error) {
	s, err := m.redis()
	if err != nil {
		return Dumped{}, err
	}
	buffer := bufio.NewWriterSize(w, 1<<16)
	d := &dump{m: m, store: s, encoder: json.NewEncoder(buffer)}
	d.encoder.SetEscapeHTML(false)
	err = d.write(ctx)
	if err == nil {
		err = buffer.Flush()
	}
	if err != nil {
		return d.done, fmt.Errorf("dumping namespace %s: %w", m.cfg.Namespace, err)
	}
	return d.done, nil
}

// A dump is one that is being written.
type dump struct {
	m       *Manager
	store   *redisstate.Store
	encoder *json.Encoder
	done    Dumped
}

func (d *dump) write(ctx context.Context) error {
	now, err := d.store.Now(ctx)
	if err != nil {
		return err
	}
	last, err := d.store.LastID(ctx)
	if err != nil {
		return err
	}
	header := dumpHeader{dumpFormat, redisstate.Schema, d.m.cfg.Namespace, now, last}
	if err := d.encoder.Encode(dumpLine{Header: &header}); err != nil {
		return err
	}
	if err := d.programs(ctx); err != nil {
		return err
	}
	if err := d.tasks(ctx, last); err != nil {
		return err
	}
	return d.encoder.Encode(dumpLine{End: &d.done})
}

// programs leaves out what no worker would run.
func (d *dump) programs(ctx context.Context) error {
	programs, err := d.store.Programs(ctx)
	if err != nil {
		return err
	}
	for _, p := range programs {
		archive, err := d.store.Program(ctx, p.SHA256)
		if err != nil {
			return err
		}
		if programName(archive) != p.SHA256 {
			d.m.log.Warn("a stored program is not what its name says; it is left out", "sha256", p.SHA256)
			continue
		}
		d.done.Programs++
		if err := d.encoder.Encode(dumpLine{Program: &dumpProgram{p.SHA256, archive}}); err != nil {
			return err
		}
	}
	return nil
}

// tasks writes those that the counter has given out by now, in their order, and then those beyond.
func (d *dump) tasks(ctx context.Context, last int64) error {
	for from := int64(1); from <= last; from += dumpPage {
		var ids []int64
		for id := from; id < from+dumpPage && id <= last; id++ {
			ids = append(ids, id)
		}
		if err := d.store.Records(ctx, ids, d.task); err != nil {
			return err
		}
	}
	return d.beyond(ctx, last)
}

// beyond writes the tasks that came since, or whose ids the counter does not know because somebody has lost it.
func (d *dump) beyond(ctx context.Context, last int64) error {
	written := map[int64]bool{}
	var page redisstate.Page
	for done := false; !done; {
		var ids []int64
		var err error
		if ids, page, done, err = d.store.Walk(ctx, page, dumpPage); err != nil {
			return err
		}
		ids = slices.DeleteFunc(ids, func(id int64) bool { return id <= last || written[id] })
		if err := d.store.Records(ctx, ids, d.task); err != nil {
			return err
		}
		for _, id := range ids {
			written[id] = true
		}
	}
	return nil
}

func (d *dump) task(r redisstate.Record) error {
	t := dumpTask{ID: r.ID, Hash: make(map[string]dumpText, len(r.Hash))}
	for name, value := range r.Hash {
		if utf8.ValidString(name) {
			t.Hash[name] = dumpText(value)
		} else {
			t.Odd = append(t.Odd, [2]dumpText{dumpText(name), dumpText(value)})
		}
	}
	for _, u := range r.Updates {
		t.Updates = append(t.Updates, dumpUpdate{u.Round, u.Number, u.Time, dumpText(u.Line)})
	}
	d.done.Tasks++
	return d.encoder.Encode(dumpLine{Task: &t})
}
