package program

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/task"
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

// MaxOfSubmitters is the number of bytes of stored programs up to which submitters may store one more. It bounds the
// memory of Redis that a token of a submitter can take.
const MaxOfSubmitters = 1 << 30

// PushFor does the same as PushPacked for the owner of tasks, who is a submitter, or "" for an operator. The error has
// the code [tdf.CodeFull] if the stored programs of the namespace would have more than MaxOfSubmitters bytes together,
// or if those of a submitter would have more than half of the bytes that the programs of others leave.
func PushFor(ctx context.Context, m *manager.Manager, p Packed, owner string) (Pushed, error) {
	if owner == "" {
		return PushPacked(ctx, m, p)
	}
	s := storeOf(m)
	stored, err := s.Programs.Programs(ctx)
	if err != nil {
		return Pushed{}, err
	}
	owners, err := s.Programs.ProgramOwners(ctx)
	if err != nil {
		return Pushed{}, err
	}
	sum, total := fmt.Sprintf("%x", sha256.Sum256(p.Archive)), int64(len(p.Archive))
	own := total
	for _, other := range stored {
		if other.SHA256 == sum {
			return PushPacked(ctx, m, p) // it needs no more room
		}
		total += other.Bytes
		if owners[other.SHA256] == owner {
			own += other.Bytes
		}
	}
	switch others := total - own; {
	case total > MaxOfSubmitters:
		return Pushed{}, task.NewError(tdf.CodeFull, "the stored programs of the namespace would have more than 1 "+
			"GiB; an operator can remove some (tdf programs rm), or store this one")
	case own > (MaxOfSubmitters-others)/2:
		return Pushed{}, task.NewError(tdf.CodeFull, "the submitter would have more than half of the room for "+
			"programs that others leave; an operator can remove some (tdf programs rm), or store this one")
	}
	// The owner comes first, because a repeated push finds a stored program and adds none.
	if err := s.Programs.OwnProgram(ctx, sum, owner); err != nil {
		return Pushed{}, err
	}
	return PushPacked(ctx, m, p)
}

// Put stores an archive of up to 64 MiB, and returns the program's source, redis:SHA256 (docs/programs.md, "Sources").
// The archive must contain run.sh at its top. If the archive is already stored, Put changes nothing.
func Put(ctx context.Context, m *manager.Manager, archive []byte) (source string, err error) {
	return storeOf(m).Programs.PutProgram(ctx, archive)
}
