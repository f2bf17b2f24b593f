package cli

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
)

// Without --config and TDF_CONFIG, tdf uses ./tdf.cfg only if no other user can have written it.
func TestConfigFileOfOthers(t *testing.T) {
	do := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	const other = 12345 // a user and a group
	for name, c := range map[string]struct {
		change func(dir, file string)
		root   bool // only root can make the change
		used   bool
	}{
		"own":                          {change: func(string, string) {}, used: true},
		"own, private group":           {change: func(dir, file string) { do(os.Chmod(file, 0o660)); do(os.Chmod(dir, 0o770)) }, root: true, used: true}, // root's group is private
		"file of others":               {change: func(_, file string) { do(os.Chown(file, other, 0)) }, root: true},
		"directory of others":          {change: func(dir, _ string) { do(os.Chown(dir, other, 0)) }, root: true},
		"writable for a group":         {change: func(_, file string) { do(os.Chown(file, 0, other)); do(os.Chmod(file, 0o620)) }, root: true},
		"writable for all":             {change: func(_, file string) { do(os.Chmod(file, 0o602)) }},
		"directory writable for all":   {change: func(dir, _ string) { do(os.Chmod(dir, 0o1777)) }},
		"link to a safe directory":     {change: func(dir, file string) { moveAndLink(t, file, dir, 0o700) }, used: true},
		"link to an unsafe directory":  {change: func(dir, file string) { moveAndLink(t, file, dir, 0o777) }},
		"link to a file that is gone":  {change: func(dir, file string) { do(os.Remove(file)); do(os.Symlink("none", file)) }},
		"no file, writable for others": {change: func(dir, file string) { do(os.Remove(file)); do(os.Chmod(dir, 0o777)) }},
	} {
		t.Run(name, func(t *testing.T) {
			if c.root && os.Geteuid() != 0 {
				t.Skip("needs root")
			}
			dir := t.TempDir()
			file := filepath.Join(dir, usualFile)
			do(os.WriteFile(file, nil, 0o600))
			do(os.Chmod(dir, 0o700))
			c.change(dir, file)
			path, err := (&App{Process: Process{Dir: dir}}).ConfigFile()
			_, none := os.Stat(file)
			refused := errors.As(err, new(*config.Error))
			used := path == file
			expect.Equal(t, used, c.used, path)
			expect.Equal(t, refused, !used && none == nil, path)
			expect.Result((&App{File: usualFile}).ConfigFile()).Is(t, usualFile, "a file that the user names")
		})
	}
}

// moveAndLink moves a file into a new directory with a mode, and makes a link to the file in its old place.
func moveAndLink(t *testing.T, file, dir string, mode os.FileMode) {
	sub := filepath.Join(dir, "sub")
	moved := filepath.Join(sub, "moved")
	expect.NoError(t, errors.Join(os.Mkdir(sub, mode), os.Chmod(sub, mode), os.Rename(file, moved), os.Symlink(moved, file)))
}
