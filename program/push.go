package program

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/manager"
)

// A Pushed is a program that Push has stored.
type Pushed struct {
	Program string // the program's name, for manager.Definition
	Source  string // the program's source, for manager.Definition
	Files   int
	Bytes   int64 // size of the archive
}

// Push packs a program's directory with [Pack], and stores the archive in the namespace's Redis.
func Push(ctx context.Context, m *manager.Manager, dir string) (Pushed, error) {
	p, err := Pack(dir)
	if err != nil {
		return Pushed{}, err
	}
	return PushPacked(ctx, m, p)
}

// PushPacked stores the archive of a packed program in the namespace's Redis.
func PushPacked(ctx context.Context, m *manager.Manager, p Packed) (Pushed, error) {
	source, err := Put(ctx, m, p.Archive)
	if err != nil {
		return Pushed{}, err
	}
	return Pushed{Program: p.Name, Source: source, Files: p.Files, Bytes: int64(len(p.Archive))}, nil
}

// MaxOfSubmitters is the number of bytes of stored programs up to which submitters may store one more. It bounds the memory of Redis
// that a token of a submitter can take.
const MaxOfSubmitters = 1 << 30

// PushWithin does the same as PushPacked for a submitter. If the stored programs of the namespace would have more than MaxOfSubmitters bytes,
// the error has the code [tdf.CodeFull].
func PushWithin(ctx context.Context, m *manager.Manager, p Packed) (Pushed, error) {
	stored, err := List(ctx, m)
	if err != nil {
		return Pushed{}, err
	}
	sum, total := fmt.Sprintf("%x", sha256.Sum256(p.Archive)), int64(len(p.Archive))
	for _, other := range stored {
		if other.SHA256 == sum {
			return PushPacked(ctx, m, p) // it needs no more room
		}
		total += other.Bytes
	}
	if total > MaxOfSubmitters {
		return Pushed{}, tdf.NewError(tdf.CodeFull, "the stored programs of the namespace would have more than 1 GiB; an operator can remove some (tdf programs rm), or store this one")
	}
	return PushPacked(ctx, m, p)
}

// Put stores an archive of up to 64 MiB, and returns the program's source, redis:SHA256 (docs/programs.md, "Sources"). The
// archive must contain run.sh at its top. If the archive is already stored, Put changes nothing.
func Put(ctx context.Context, m *manager.Manager, archive []byte) (source string, err error) {
	s := m.Internals().Store
	return s.PutProgram(ctx, archive)
}
