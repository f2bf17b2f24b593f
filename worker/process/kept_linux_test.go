package process

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// The file Kept of a command is open in the program, with limits and without.
func TestKeptFileIsOpenInTheProgram(t *testing.T) {
	bothWays(t, func(t *testing.T, s *site) {
		f, err := os.Create(filepath.Join(t.TempDir(), "lock"))
		must(t, err)
		defer f.Close()
		r := s.start(Command{Path: "/bin/sh", Args: []string{"-c", "readlink /proc/self/fd/99"}, Kept: f})
		r.wait()
		expect.Equal(t, r.printed(), f.Name()+"\n", "descriptor", KeptDescriptor, "of the program")
	})
}
