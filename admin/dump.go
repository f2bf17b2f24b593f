package admin

import (
	"bufio"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/index"
)

// dumpFormat is the version of the lines that [Admin.Dump] writes (docs/tdf.md, "Dumps").
const dumpFormat = 1

// A dumpKey is a kind of the keys that a dump has.
type dumpKey struct {
	name  string // without the namespace; if it ends with a colon, the rest of the name follows
	write func(*dump, context.Context, *dumpKey) error
	check func(*dumpLine) error
	load  func(*loading, context.Context, *dumpLine) error
}

// dumpKeys has the keys of a dump in their order. Pauses and limits come before the tasks, so that no worker claims a
// task that is about to be paused. Marks and records of stages come after the tasks, so that no manager acts on a group
// that lacks tasks. A stage's definitions come before its record. Tasks may name programs that were stored during the
// dump, so programs come twice.
var dumpKeys = []dumpKey{
	{"settings", (*dump).fields, checkFields, (*loading).fields},
	{"paused", (*dump).fields, checkFields, (*loading).fields},
	{"limits", (*dump).fields, checkFields, (*loading).fields},
	{"program:", (*dump).programs, checkProgram, (*loading).program},
	{"task:", (*dump).tasks, checkTask, (*loading).task},
	{"program:", (*dump).namedPrograms, checkProgram, (*loading).program},
	{"groups", (*dump).fields, checkFields, (*loading).fields},
	{"definitions:", (*dump).definitions, checkFields, (*loading).fields},
	{"pipelines", (*dump).fields, checkFields, (*loading).fields},
	{"periodic", (*dump).fields, checkFields, (*loading).fields},
}

// A dumpLine is one line of a dump: its header, its end, or a key of Redis. A key has a hash or a text. A task also has
// its updates. The fields of a hash may be spread over several lines.
type dumpLine struct {
	Header  *dumpHeader         `json:"dump,omitempty"` // the first line
	Key     string              `json:"key,omitempty"`  // without the namespace
	Hash    tdf.Hash            `json:"hash,omitempty"`
	Updates []redisstate.Update `json:"updates,omitempty"`
	Text    []byte              `json:"text,omitempty"`
	Pinned  bool                `json:"pinned,omitempty"` // a program that the server keeps
	End     *Dumped             `json:"end,omitempty"`    // the last line

	raw  []byte
	kind *dumpKey // of Key
}

type dumpHeader struct {
	Format    int      `json:"format"`
	Schema    int      `json:"schema"`
	Namespace string   `json:"namespace"`
	Time      tdf.Time `json:"time"`
	LastID    int64    `json:"last_id"`
}

// Dumped says how many programs, tasks and other values a dump contains.
type Dumped struct {
	Programs int64 `json:"programs"`
	Tasks    int64 `json:"tasks"`
	Values   int64 `json:"values,omitempty"` // settings, pauses, limits, closed groups, pipelines, periodic tasks
}

// add counts a key of a dump.
func (d *Dumped) add(line *dumpLine) {
	switch line.kind.name {
	case "program:":
		d.Programs++
	case "task:":
		d.Tasks++
	default:
		d.Values += int64(len(line.Hash))
	}
}

// binary begins a text in base64: one that is not valid UTF-8, or that begins with the same word itself.
const binary = "base64:"

func encoded(text string) string {
	if utf8.ValidString(text) && !strings.HasPrefix(text, binary) {
		return text
	}
	return binary + base64.StdEncoding.EncodeToString([]byte(text))
}

// decode undoes the function encoded for all texts of a line.
func (l *dumpLine) decode() (err error) {
	l.change(func(text string) string {
		coded, is := strings.CutPrefix(text, binary)
		if !is {
			return text
		}
		decoded, failed := base64.StdEncoding.DecodeString(coded)
		err = cmp.Or(err, failed)
		return string(decoded)
	})
	return err
}

// change replaces the names and values in the hash of a line, and the lines of its updates.
func (l *dumpLine) change(f func(string) string) {
	hash := make(tdf.Hash, len(l.Hash))
	for name, value := range l.Hash {
		hash[f(name)] = f(value)
	}
	l.Hash = hash
	for i := range l.Updates {
		l.Updates[i].Line = f(l.Updates[i].Line)
	}
}

// dumpPage is the number of tasks that Dump reads at once.
const dumpPage = 500

// Dump writes the namespace as JSON lines: its tasks with their outputs and updates, its stored programs, its
// settings, pauses and limits, its closed groups, its pipelines and its periodic tasks (docs/tdf.md, "Dumps"). Other
// components may work during a dump. The dump of each task is consistent, but different tasks are read at different
// times. If Load would refuse an item, Dump omits it and logs a warning.
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
	last = min(max(last, 0), index.MaxID) // the counter may be corrupt, so its value is limited
	header := dumpHeader{dumpFormat, conn.Schema, d.parts.Config.Namespace, now, last}
	if err := d.encoder.Encode(dumpLine{Header: &header}); err != nil {
		return err
	}
	for i := range dumpKeys {
		if err := dumpKeys[i].write(d, ctx, &dumpKeys[i]); err != nil {
			return err
		}
	}
	return d.encoder.Encode(dumpLine{End: &d.done})
}

// put writes a line, unless Load would refuse it.
func (d *dump) put(kind *dumpKey, line dumpLine) error {
	if err := kind.check(&line); err != nil {
		d.leaveOut(err)
		return nil
	}
	line.kind = kind
	d.done.add(&line)
	line.change(encoded)
	return d.encoder.Encode(line)
}

func (d *dump) leaveOut(why error) {
	d.parts.Log.Warn("the dump leaves something out", "why", why)
}

// fields writes the fields of a hash.
func (d *dump) fields(ctx context.Context, kind *dumpKey) error {
	line, put := dumpLine{Key: kind.name, Hash: tdf.Hash{}}, error(nil)
	read := d.store.Fields(ctx, kind.name, func(name, text string) bool {
		_, since, _ := strings.Cut(text, " ")
		closed, _ := tdf.ParseTime(since)
		err := redisstate.CheckField(kind.name, name, text)
		if err == nil && kind.name == "groups" && closed > d.begun {
			err = fmt.Errorf("group %q was closed during the dump, which may lack some of its tasks", name)
		}
		if err != nil {
			d.leaveOut(err)
			return true
		}
		if line.Hash[name] = text; len(line.Hash) == redisstate.FieldsPerCall {
			put = d.put(kind, line)
			line.Hash = tdf.Hash{}
		}
		return put == nil
	})
	if err := cmp.Or(read, put); err != nil || len(line.Hash) == 0 {
		return err
	}
	return d.put(kind, line)
}

// definitions writes the stored definitions that the records of stages name. Their first record.Done chunks no longer
// exist.
func (d *dump) definitions(ctx context.Context, kind *dumpKey) (err error) {
	read := d.store.Fields(ctx, "pipelines", func(_, text string) bool {
		record, _ := tdf.ParseStageRecord(text)
		data := "more"
		for chunk := record.Done; err == nil && data != "" && chunk < record.Chunks; chunk++ {
			data, err = d.store.EncodedDefinitions(ctx, record.Stored, chunk)
			if conn.IsWrongType(err) {
				err = nil
			}
			if data != "" {
				err = d.put(kind, dumpLine{Key: kind.name + record.Stored, Hash: tdf.Hash{strconv.Itoa(chunk): data}})
			}
		}
		return err == nil
	})
	return cmp.Or(read, err)
}

func (d *dump) programs(ctx context.Context, kind *dumpKey) error {
	programs, err := d.store.Programs(ctx)
	if err != nil {
		return err
	}
	for _, p := range programs {
		if err := d.program(ctx, kind, p.SHA256, p.Pinned); err != nil {
			return err
		}
	}
	return nil
}

// namedPrograms writes the programs that tasks name, and that were not in the list of programs before.
func (d *dump) namedPrograms(ctx context.Context, kind *dumpKey) error {
	for _, sha256 := range slices.Sorted(maps.Keys(d.named)) {
		if err := d.program(ctx, kind, sha256, false); err != nil {
			return err
		}
	}
	return nil
}

// program writes a program, if the dump does not yet contain it.
func (d *dump) program(ctx context.Context, kind *dumpKey, sha256 string, pinned bool) error {
	if d.met[sha256] {
		return nil
	}
	d.met[sha256] = true
	archive, err := d.store.Program(ctx, sha256)
	if err != nil {
		return err
	}
	if archive == nil {
		d.leaveOut(fmt.Errorf("program %s is not stored", sha256))
		return nil
	}
	return d.put(kind, dumpLine{Key: kind.name + sha256, Text: archive, Pinned: pinned})
}

func (d *dump) tasks(ctx context.Context, kind *dumpKey) error {
	put := func(r redisstate.Record) error {
		if source, err := tdf.ParseSource(r.Hash["source"]); err == nil && source.Scheme == tdf.SchemeRedis {
			d.named[source.SHA256] = true
		}
		key := kind.name + strconv.FormatInt(r.ID, 10)
		return d.put(kind, dumpLine{Key: key, Hash: r.Hash, Updates: r.Updates})
	}
	for ids, err := range d.store.IDs(ctx, dumpPage) {
		if err == nil {
			err = d.store.Records(ctx, ids, put)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
