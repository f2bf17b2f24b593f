package broker

import (
	"context"
	"fmt"
	"io"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/task"
)

// partOfArchive is how many bytes of an archive are in memory at once.
const partOfArchive = 1 << 20

// WriteProgram writes the stored program that the task of a run names. The run must be one of the worker's own, so a
// worker gets no programs of other tasks.
func (b *Broker) WriteProgram(ctx context.Context, t *access.Token, id string, r Run, sha256 string,
	to io.Writer,
) error {
	of, err := b.taskOf(ctx, t, id, r, "read the program of")
	if err != nil {
		return err
	}
	if task.StoredProgram(of.Source) != sha256 {
		return task.NewError(task.CodeNotFound, fmt.Sprintf("the source of task %d is another one", r.ID))
	}
	for written, size := int64(0), int64(1); written < size; {
		var part []byte
		part, size, err = b.store.ProgramPart(ctx, sha256, written, partOfArchive)
		switch {
		case err != nil:
			return err
		case len(part) == 0:
			return task.NewError(task.CodeNotFound, "no stored program has the SHA-256 "+sha256)
		}
		if _, err := to.Write(part); err != nil {
			return err
		}
		written += int64(len(part))
	}
	return nil
}
