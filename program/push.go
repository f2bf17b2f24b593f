package program

import (
	"context"

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

// Put stores an archive of up to 64 MiB, and returns the program's source, redis:SHA256 (docs/programs.md, "Sources"). The
// archive must contain run.sh at its top. If the archive is already stored, Put changes nothing.
func Put(ctx context.Context, m *manager.Manager, archive []byte) (source string, err error) {
	s := m.Internals().Store
	return s.PutProgram(ctx, archive)
}
