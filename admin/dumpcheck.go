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
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/index"
	"github.com/tdf-framework/tdf/redisstate/programs"
)

// A DumpError says which line of a dump is invalid, and why.
type DumpError struct {
	Line    int
	Problem string
}

func (e *DumpError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Problem) }

// Code returns the error's code (docs/manager.md, "Codes of errors").
func (*DumpError) Code() tdf.Code { return tdf.CodeDamaged }

// maxDumpLine is the maximum length of a line. A line contains one task with the outputs of all its rounds.
const maxDumpLine = 1 << 30

// readDump calls the function take for each line of a dump that is not blank. It calls take for the last line only
// after it has checked that nothing follows that line.
func readDump(ctx context.Context, r io.Reader, take func(context.Context, *dumpLine) error) error {
	check := dumpCheck{lines: bufio.NewScanner(r)}
	check.lines.Buffer(make([]byte, 1<<16), maxDumpLine)
	for {
		text, err := check.next(ctx)
		switch {
		case err != nil:
			return err
		case text == nil && check.end == nil:
			return check.wrong("the dump is cut off: its last line is missing")
		case text == nil:
			return take(ctx, check.end)
		case check.end != nil:
			return check.wrong("the dump continues after its last line")
		}
		line, err := check.parse(text)
		if err == nil && line.End == nil {
			err = take(ctx, line)
		}
		if err != nil {
			return err
		}
	}
}

// next returns the next line that is not blank, without blanks at its ends. At the end of the dump it returns nil.
func (c *dumpCheck) next(ctx context.Context) ([]byte, error) {
	for {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		c.line++
		more := c.lines.Scan()
		err := c.lines.Err() // also if there is a line, which is then cut off
		switch {
		case errors.Is(err, bufio.ErrTooLong):
			return nil, c.wrong("the line is longer than %d bytes", maxDumpLine)
		case err != nil: // only the reader has failed, so the error must not be a DumpError
			return nil, fmt.Errorf("read line %d of the dump: %w", c.line, err)
		case !more:
			return nil, nil
		}
		if text := bytes.TrimSpace(c.lines.Bytes()); len(text) > 0 {
			return text, nil
		}
	}
}

// A dumpCheck checks the order of the lines of a dump.
type dumpCheck struct {
	lines *bufio.Scanner
	line  int
	begun bool
	found Dumped
	end   *dumpLine // the last line, or nil if it was not read yet
}

func (c *dumpCheck) wrong(format string, args ...any) error {
	return &DumpError{c.line, fmt.Sprintf(format, args...)}
}

func (c *dumpCheck) parse(text []byte) (*dumpLine, error) {
	line := &dumpLine{raw: text}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(line)
	if unpacker := compressedBy(text); err != nil && unpacker != "" && !c.begun {
		return nil, c.wrong("the dump is compressed: unpack it with %s first", unpacker)
	}
	if err == nil {
		err = line.decode()
	}
	if err != nil {
		return nil, c.wrong("the line does not belong to a dump: %v", err)
	}
	parts := 0
	for _, is := range []bool{line.Header != nil, line.Key != "", line.End != nil} {
		if is {
			parts++
		}
	}
	switch {
	case decoder.More():
		return nil, c.wrong("the line does not belong to a dump: it contains more than one JSON value")
	case parts != 1:
		return nil, c.wrong(`the line does not belong to a dump: want exactly one of "dump", "key", "end"`)
	case (line.Header != nil) == c.begun:
		return nil, c.wrong(`only the first line of a dump has "dump"`)
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

func (c *dumpCheck) check(line *dumpLine) error {
	switch {
	case line.Header != nil:
		return c.header(*line.Header)
	case line.End == nil:
		if err := line.check(); err != nil {
			return c.wrong("%v", err)
		}
		c.found.add(line)
	case c.found != *line.End:
		return c.wrong("the last line counts %d tasks, %d programs and %d other values, but the dump contains %d, "+
			"%d and %d: lines were removed or added",
			line.End.Tasks, line.End.Programs, line.End.Values, c.found.Tasks, c.found.Programs, c.found.Values)
	default:
		c.end = line
	}
	return nil
}

// check finds the kind of a key, and checks the line.
func (l *dumpLine) check() error {
	for i := range dumpKeys {
		name := dumpKeys[i].name
		if l.Key == name || strings.HasSuffix(name, ":") && strings.HasPrefix(l.Key, name) {
			l.kind = &dumpKeys[i]
			return l.kind.check(l)
		}
	}
	return fmt.Errorf("a dump has no key %.100q", l.Key)
}

func checkFields(l *dumpLine) error {
	if most := redisstate.FieldsPerCall; len(l.Hash) > most {
		return fmt.Errorf("%s has %d fields; at most %d are allowed in a line", l.Key, len(l.Hash), most)
	}
	for _, name := range slices.Sorted(maps.Keys(l.Hash)) {
		if err := redisstate.CheckField(l.Key, name, l.Hash[name]); err != nil {
			return err
		}
	}
	return nil
}

func checkProgram(l *dumpLine) error {
	sum := strings.TrimPrefix(l.Key, "program:")
	switch {
	case programName(l.Text) != sum:
		return fmt.Errorf("the SHA-256 of the archive of program %.100q differs from the name", sum)
	case len(l.Text) > programs.MaxBytes:
		return fmt.Errorf("program %s has %d bytes; want at most %d", sum, len(l.Text), programs.MaxBytes)
	}
	return nil
}

func checkTask(l *dumpLine) error {
	r := l.record()
	if err := r.Validate(); err != nil {
		return err
	}
	if l.Key != "task:"+strconv.FormatInt(r.ID, 10) {
		return fmt.Errorf("a dump has no key %.100q", l.Key)
	}
	return nil
}

// record returns the task of a line.
func (l *dumpLine) record() redisstate.Record {
	id, _ := strconv.ParseInt(strings.TrimPrefix(l.Key, "task:"), 10, 64)
	return redisstate.Record{ID: id, Hash: l.Hash, Updates: l.Updates}
}

func (c *dumpCheck) header(h dumpHeader) error {
	switch {
	case h.Format != dumpFormat || h.Schema != conn.Schema:
		return c.wrong("the dump has format %d and layout version %d, and this release knows %d and %d: use the "+
			"release that wrote it", h.Format, h.Schema, dumpFormat, conn.Schema)
	case h.LastID < 0 || h.LastID > index.MaxID:
		return c.wrong("the dump's last id %d is invalid", h.LastID)
	}
	return nil
}

func programName(archive []byte) string {
	sum := sha256.Sum256(archive)
	return hex.EncodeToString(sum[:])
}
