package program

import (
	"context"

	"github.com/tdf-framework/tdf/internal/friend"
	"github.com/tdf-framework/tdf/manager"
)

// A Pushed is a program that Push has stored.
type Pushed struct {
	Program string // its name, for manager.Definition
	Source  string // its source, for manager.Definition
	Files   int
	Bytes   int64 // of the archive
}

// Push packs a program's directory ([Pack]) and stores it in the namespace's Redis.
func Push(ctx context.Context, m *manager.Manager, dir string) (Pushed, error) {
	p, err := Pack(dir)
	if err != nil {
		return Pushed{}, err
	}
	return PushPacked(ctx, m, p)
}

// PushPacked stores a packed program.
func PushPacked(ctx context.Context, m *manager.Manager, p Packed) (Pushed, error) {
	source, err := Put(ctx, m, p.Archive)
	if err != nil {
		return Pushed{}, err
	}
	return Pushed{Program: p.Name, Source: source, Files: p.Files, Bytes: int64(len(p.Archive))}, nil
}

// Put stores an archive of up to 64 MiB that has run.sh at its top, and returns its source, redis:SHA256 (docs/programs.md, "Sources").
// Storing the same archive again changes nothing.
func Put(ctx context.Context, m *manager.Manager, archive []byte) (source string, err error) {
	s, err := friend.StoreOf(ctx, m)
	if err != nil {
		return "", err
	}
	return s.PutProgram(ctx, archive)
}
