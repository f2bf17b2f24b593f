package fetch

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// FuzzUnpack checks that the unpacker never panics, and that it never changes files outside its directory.
func FuzzUnpack(f *testing.F) {
	for _, tt := range hostile {
		f.Add(pack(f, "tar", tt.items...))
		f.Add(pack(f, "tar.gz", tt.items...))
		if !tt.tarOnly {
			f.Add(pack(f, "zip", tt.items...))
		}
	}
	for _, ending := range append([]string{"zip"}, tarEndings...) {
		f.Add(pack(f, ending, item{name: "d/a", body: "x"}, item{name: "l", kind: '2', link: "d"}, runItem))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		outer := t.TempDir()
		archive := write(t, filepath.Join(outer, "archive"), data)
		before := snapshot(t, outer)
		tree := mkdir(t, filepath.Join(outer, "tree"))
		err := unpack(t.Context(), archive, tree, Limits{Bytes: 1 << 20, Entries: 100}, TestCompressions)
		broken := (panicked{})
		expect.True(t, !errors.As(err, &broken), err)
		checkInside(t, tree)
		must(t, os.RemoveAll(tree))
		checkSame(t, outer, before)
	})
}

// checkInside checks that no link in the tree leads out of the tree.
func checkInside(t *testing.T, tree string) {
	t.Helper()
	root := expect.Result(os.OpenRoot(tree)).Value(t)
	defer root.Close()
	for name, text := range snapshot(t, tree) {
		expect.OneOf(t, text[0], 'L', '-', 'd')
		target, err := os.Readlink(filepath.Join(tree, name))
		if err == nil {
			expect.True(t, !filepath.IsAbs(target), name, "links to", target)
		}
	}
}
