package admin

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

// A DumpError is the number of an invalid line of a dump, and the reason.
type DumpError struct {
	Line    int
	Problem string
}

func (e *DumpError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Problem) }

// ErrOccupied is the error of loading a dump into a namespace that contains tasks.
var ErrOccupied = errors.New("a dump can only be loaded into a namespace without tasks")

// Loaded is how many programs and tasks a load has written or found.
type Loaded struct {
	Dumped
	There int64 `json:"there"` // tasks that an earlier, interrupted load of the same dump wrote
}

// Load loads a dump that [Admin.Dump] wrote, from this namespace or from another one. The namespace must contain no tasks;
// otherwise the error wraps [ErrOccupied]. If the dump is invalid, the error wraps a *[DumpError]. An error of r is not a
// DumpError. If r is a file, Load checks the whole dump before it writes anything. After an error, Loaded contains the
// programs and tasks that were written before.
//
// Tasks keep their ids and states. Running tasks belong to their workers until their leases run out. If tasks are opened
// during the load, they get other ids. To continue a load that was interrupted, load the same dump again.
func (a *Admin) Load(ctx context.Context, r io.Reader) (Loaded, error) {
	s, err := a.redis(ctx)
	if err != nil {
		return Loaded{}, err
	}
	highest, err := checkDump(ctx, r)
	if err != nil {
		return Loaded{}, err
	}
	l := &loading{Admin: a, store: s, last: highest}
	err = readDump(ctx, r, l.take)
	if errors.As(err, new(*DumpError)) && l.begun {
		err = fmt.Errorf("%w; %d of its tasks were loaded; load the whole dump again, or use another namespace", err, l.done.Tasks)
	}
	return l.done, err
}

// checkDump checks a dump and returns its highest id. It then seeks back to the beginning. If r cannot seek, checkDump
// does nothing.
func checkDump(ctx context.Context, r io.Reader) (highest int64, err error) {
	file, ok := r.(io.Seeker)
	if !ok {
		return 0, nil
	}
	begin, err := file.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, nil
	}
	err = readDump(ctx, r, func(_ context.Context, line dumpLine, _ []byte) error {
		if line.Task != nil {
			highest = max(highest, line.Task.ID)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	_, err = file.Seek(begin, io.SeekStart)
	return highest, err
}

// maxDumpLine is the maximum length of a line. A line contains one task with the outputs of all its rounds.
const maxDumpLine = 1 << 30

// readDump calls take for each line of a dump that is not blank. It calls take for the last line only if nothing follows
// that line.
func readDump(ctx context.Context, r io.Reader, take func(ctx context.Context, line dumpLine, text []byte) error) error {
	lines := bufio.NewReaderSize(r, 1<<16)
	check := dumpCheck{}
	for !check.ended {
		text, err := check.next(ctx, lines)
		if err != nil {
			return err
		}
		if text == nil {
			return check.wrong("the dump is cut off: its last line is missing")
		}
		line, err := check.parse(text)
		if err != nil {
			return err
		}
		if check.ended {
			err = check.nothingFollows(ctx, lines)
		}
		if err != nil {
			return err
		}
		if err := take(ctx, line, text); err != nil {
			return err
		}
	}
	return nil
}

// next reads the next line that is not blank, and trims it. At the end of the dump it returns nil.
func (c *dumpCheck) next(ctx context.Context, lines *bufio.Reader) ([]byte, error) {
	for {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		c.line++
		line, err := readLine(lines)
		switch {
		case err == errLongLine:
			return nil, c.wrong("%v", err)
		case err != nil && err != io.EOF: // the dump may be valid
			return nil, fmt.Errorf("read line %d of the dump: %w", c.line, err)
		}
		if text := bytes.TrimSpace(line); len(text) > 0 {
			return text, nil
		}
		if err == io.EOF {
			return nil, nil
		}
	}
}

func (c *dumpCheck) nothingFollows(ctx context.Context, lines *bufio.Reader) error {
	text, err := c.next(ctx, lines)
	if err == nil && text != nil {
		err = c.wrong("the dump continues after its last line")
	}
	return err
}

var errLongLine = fmt.Errorf("the line is longer than %d bytes", maxDumpLine)

func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if err != bufio.ErrBufferFull {
			return line, err
		}
		if len(line) > maxDumpLine {
			return nil, errLongLine
		}
	}
}

// A dumpCheck checks the order of the lines of a dump.
type dumpCheck struct {
	line  int
	begun bool
	found Dumped
	ended bool
}

func (c *dumpCheck) wrong(format string, args ...any) error {
	return &DumpError{c.line, fmt.Sprintf(format, args...)}
}

func (c *dumpCheck) parse(text []byte) (dumpLine, error) {
	var line dumpLine
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&line); err != nil {
		if unpacker := compressedBy(text); unpacker != "" && !c.begun {
			return line, c.wrong("the dump is compressed: unpack it with %s first", unpacker)
		}
		return line, c.wrong("the line does not belong to a dump: %v", err)
	}
	if decoder.More() {
		return line, c.wrong("the line does not belong to a dump: it contains more than one JSON value")
	}
	parts := 0
	for _, is := range []bool{line.Header != nil, line.Program != nil, line.Task != nil, line.End != nil} {
		if is {
			parts++
		}
	}
	switch {
	case parts != 1:
		return line, c.wrong(`the line does not belong to a dump: want exactly one of "dump", "program", "task", "end"`)
	case (line.Header != nil) == c.begun:
		return line, c.wrong(`only the first line of a dump has "dump"`)
	}
	c.begun = true
	return line, c.check(line)
}

// compressedBy returns the name of the program that unpacks a compressed text. It returns "" if the text has no known
// format.
func compressedBy(text []byte) string {
	for _, is := range []struct{ magic, unpacker string }{
		{"\x1f\x8b", "gunzip"}, {"\x28\xb5\x2f\xfd", "unzstd"}, {"\xfd7zXZ", "unxz"}, {"BZh", "bunzip2"},
	} {
		if bytes.HasPrefix(text, []byte(is.magic)) {
			return is.unpacker
		}
	}
	return ""
}

func (c *dumpCheck) check(line dumpLine) error {
	switch {
	case line.Header != nil:
		return c.header(*line.Header)
	case line.Program != nil:
		c.found.Programs++
		if programName(line.Program.Archive) != line.Program.SHA256 {
			return c.wrong("the archive of program %q has another SHA-256", line.Program.SHA256)
		}
	case line.Task != nil:
		c.found.Tasks++
		r := line.Task.record()
		if err := r.Validate(); err != nil {
			return c.wrong("%v", err)
		}
	case c.found != *line.End:
		return c.wrong("the last line counts %d tasks and %d programs, but the dump contains %d and %d: lines were removed or added",
			line.End.Tasks, line.End.Programs, c.found.Tasks, c.found.Programs)
	default:
		c.ended = true
	}
	return nil
}

func (c *dumpCheck) header(h dumpHeader) error {
	switch {
	case h.Format < 1:
		return c.wrong("the dump names no format")
	case h.Format > dumpFormat:
		return c.wrong("the dump has format %d, and this release knows format %d: use a newer release", h.Format, dumpFormat)
	case h.Schema > redisstate.Schema || h.Schema < redisstate.Schema-1:
		return c.wrong("the dump has layout version %d, and this release knows version %d: use a release that knows both", h.Schema, redisstate.Schema)
	case h.LastID < 0 || h.LastID > redisstate.MaxID:
		return c.wrong("the dump's last id %d is invalid", h.LastID)
	}
	return nil
}

func programName(archive []byte) string {
	sum := sha256.Sum256(archive)
	return hex.EncodeToString(sum[:])
}

func (t *dumpTask) record() redisstate.Record {
	r := redisstate.Record{ID: t.ID, Hash: make(tdf.Hash, len(t.Hash))}
	for name, value := range t.Hash {
		r.Hash[name] = string(value)
	}
	for _, odd := range t.Odd {
		r.Hash[string(odd[0])] = string(odd[1])
	}
	for _, u := range t.Updates {
		r.Updates = append(r.Updates, redisstate.Update{Round: u.Round, Number: u.Number, Time: tdf.Time(u.Time), Line: string(u.Line)})
	}
	return r
}

// A loading is the state of one call of Load.
type loading struct {
	*Admin
	store   *redisstate.Store
	begun   bool
	last    int64 // the highest known id of the dump
	pending []redisstate.Record
	bytes   int
	done    Loaded
}

// The loading writes its pending tasks when they reach one of these limits.
const (
	pendingTasks = 1000
	pendingBytes = 16 << 20
)

func (l *loading) take(ctx context.Context, line dumpLine, text []byte) error {
	switch {
	case line.Header != nil:
		return l.begin(ctx, *line.Header, text)
	case line.Program != nil:
		_, err := l.store.PutProgram(ctx, line.Program.Archive)
		if err == nil {
			l.done.Programs++
		}
		return err
	case line.Task != nil:
		return l.task(ctx, line.Task.record(), len(text))
	}
	if err := l.flush(ctx); err != nil {
		return err
	}
	return l.store.EndRestore(ctx)
}

// begin reserves the namespace and the ids for this dump.
func (l *loading) begin(ctx context.Context, h dumpHeader, text []byte) error {
	l.last = max(l.last, h.LastID)
	mark := programName(text)
	before, err := l.store.RestoreUnderWay(ctx)
	if err == nil && before == "" {
		before, err = mark, l.mustBeEmpty(ctx)
	}
	if err == nil && before == mark {
		before, err = l.store.BeginRestore(ctx, mark, l.last)
	}
	if err != nil {
		return err
	}
	if before != mark {
		return fmt.Errorf("another dump is being loaded into namespace %s, or its load was interrupted: %w; load that dump again, or use another namespace",
			l.parts.Config.Namespace, ErrOccupied)
	}
	l.begun = true
	return nil
}

func (l *loading) mustBeEmpty(ctx context.Context) error {
	counts, err := l.store.Counts(ctx)
	if n := counts.Total(); n > 0 {
		return fmt.Errorf("namespace %s has %d tasks: %w; use another namespace", l.parts.Config.Namespace, n, ErrOccupied)
	}
	return err
}

func (l *loading) task(ctx context.Context, r redisstate.Record, bytes int) error {
	if _, has := r.Hash["namespace"]; has {
		r.Hash["namespace"] = l.parts.Config.Namespace
	}
	l.pending = append(l.pending, r)
	l.bytes += bytes
	if len(l.pending) < pendingTasks && l.bytes < pendingBytes {
		return nil
	}
	return l.flush(ctx)
}

func (l *loading) flush(ctx context.Context) error {
	written, err := l.store.Restore(ctx, l.pending...)
	if errors.Is(err, redisstate.ErrIDTaken) {
		return fmt.Errorf("%w; remove that task and load the dump again, or use another namespace", err)
	}
	if err != nil {
		return err
	}
	l.done.Tasks += int64(len(l.pending))
	l.done.There += int64(len(l.pending) - written)
	l.pending, l.bytes = l.pending[:0], 0
	return nil
}
