package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strconv"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/sweep"
)

// maxBlock limits a block of --pipe, and a line in it.
const maxBlock = 1 << 30

// openBlocks returns a row for each block of whole lines of stdin. The block is a file in the directory of the call,
// with the number of the row as its name. The command reads it as its stdin.
func (r *run) openBlocks(ctx context.Context, sources []source, t *template) (*inputs, error) {
	if r.block > maxBlock {
		return nil, cli.Usagef("--block: want at most %d bytes", maxBlock)
	}
	from := append(sources, source{path: "-"})[0]
	err := from.open(ctx, r.a)
	if err != nil {
		return nil, err
	}
	in := &inputs{total: -1, close: func() { closeAll([]source{from}) }}
	t.wrap.stdin = func(number int64) string { return filepath.Join(in.blocks, strconv.FormatInt(number, 10)) }
	in.rows = func(yield func(sweep.Row, error) bool) {
		number := int64(0)
		for block, err := range blocksOf(from.file, int(r.block)) {
			number++
			if err == nil {
				err = os.WriteFile(t.wrap.stdin(number), block, 0o600)
			}
			if !yield(sweep.Row{Line: number}, err) || err != nil {
				return
			}
		}
	}
	return in, t.parse(nil)
}

// blocksOf returns parts of a stream with whole lines. A part has at most the given size, unless a line is longer.
func blocksOf(in io.Reader, size int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		var held []byte // its first bytes are not yielded yet
		for {
			room := size // more than a block only if a line is longer
			if len(held) < size {
				room = size - len(held)
			}
			part := make([]byte, room)
			n, err := io.ReadFull(in, part)
			held = append(held, part[:n]...)
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				if len(held) > 0 {
					yield(held, nil)
				}
				return
			}
			end := bytes.LastIndexByte(held, '\n') + 1
			if err == nil && end == 0 && len(held) > maxBlock {
				err = fmt.Errorf("a line is longer than %d bytes", maxBlock)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if end == 0 {
				continue
			}
			if !yield(held[:end], nil) {
				return
			}
			held = bytes.Clone(held[end:])
		}
	}
}

// makeBlocks makes the directory of the blocks.
func (c *campaign) makeBlocks() error {
	if !c.pipe {
		return nil
	}
	c.in.blocks = filepath.Join(c.here.tdf.Directory, "stdin of commands")
	return os.Mkdir(c.in.blocks, 0o700)
}
