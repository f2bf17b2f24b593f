package admin

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/conn"
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
func readDump(ctx context.Context, r io.Reader, take func(ctx context.Context, line dumpLine,
	text []byte) error,
) error {
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

// next returns the next line that is not blank, without blanks at its ends. At the end of the dump it returns nil.
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
		case err != nil && err != io.EOF: // only the reader has failed, so the error must not be a DumpError
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
	for _, is := range []bool{
		line.Header != nil, line.Program != nil, line.Task != nil, line.End != nil,
		line.Value != nil, line.Definitions != nil,
	} {
		if is {
			parts++
		}
	}
	switch {
	case parts != 1:
		return line, c.wrong(`the line does not belong to a dump: want exactly one of "dump", "program", "task", "value", "definitions", "end"`)
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
			return c.wrong("the SHA-256 of the archive of program %q differs from the name", line.Program.SHA256)
		}
	case line.Task != nil:
		c.found.Tasks++
		r := line.Task.record()
		if err := r.Validate(); err != nil {
			return c.wrong("%v", err)
		}
	case line.Value != nil:
		c.found.Values++
		if err := line.Value.value().Validate(); err != nil {
			return c.wrong("%v", err)
		}
	case line.Definitions != nil:
		c.found.Values++
		if err := line.Definitions.check(); err != nil {
			return c.wrong("%v", err)
		}
	case c.found != *line.End:
		return c.wrong("the last line counts %d tasks, %d programs and %d other values, but the dump contains %d, "+
			"%d and %d: lines were removed or added",
			line.End.Tasks, line.End.Programs, line.End.Values, c.found.Tasks, c.found.Programs, c.found.Values)
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
		return c.wrong("the dump has format %d, and this release knows format %d: use a newer release", h.Format,
			dumpFormat)
	case h.Schema > conn.Schema || h.Schema < conn.Schema-1:
		return c.wrong("the dump has layout version %d, and this release knows version %d: use a release that knows "+
			"both", h.Schema, conn.Schema)
	case h.LastID < 0 || h.LastID > redisstate.MaxID:
		return c.wrong("the dump's last id %d is invalid", h.LastID)
	}
	return nil
}

func programName(archive []byte) string {
	sum := sha256.Sum256(archive)
	return hex.EncodeToString(sum[:])
}
