package program

import (
	"context"

	"github.com/tdf-framework/tdf/internal/friend"
	"github.com/tdf-framework/tdf/manager"
)

// A Pushed is a program that was stored.
type Pushed struct {
	Program string // its name, for [manager.Manager.Define]
	Source  string // where workers get it
	Files   int
	Bytes   int64 // of the archive
}

// Push packs a program's directory, as [Pack] says, and stores it in the namespace's own Redis.
func Push(ctx context.Context, m *manager.Manager, dir string) (Pushed, error) {
	p, err := Pack(dir)
	if err != nil {
		return Pushed{}, err
	}
	return PushPacked(ctx, m, p)
}

// PushPacked is Push for a directory that is packed already.
func PushPacked(ctx context.Context, m *manager.Manager, p Packed) (Pushed, error) {
	source, err := Put(ctx, m, p.Archive)
	if err != nil {
		return Pushed{}, err
	}
	return Pushed{Program: p.Name, Source: source, Files: p.Files, Bytes: int64(len(p.Archive))}, nil
}

// Put stores an archive of up to 64 MiB, with run.sh at its top, in the namespace's own
// Redis, and returns the source by which tasks name it: redis:SHA256 (docs/programs.md,
// "Sources"). Storing the same bytes again changes nothing.
func Put(ctx context.Context, m *manager.Manager, archive []byte) (source string, err error) {
	s, err := friend.StoreOf(ctx, m)
	if err != nil {
		return "", err
	}
	return s.PutProgram(ctx, archive)
}
