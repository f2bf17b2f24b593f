package main

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// If the disk of TMPDIR is full, tdf run ends, and says what to do.
func TestRunOnAFullDisk(t *testing.T) {
	const mounted, script = "mounted\n", `
mount -t tmpfs -o size=64k tmpfs "$TMPDIR" || exit
echo mounted
head -c 1000000 /dev/zero >"$TMPDIR/filler"
exec tdf run -j 2 echo ::: 1 2 3`
	dir := t.TempDir()
	args := []string{"--mount", "sh", "-c", script}
	if os.Geteuid() != 0 {
		args = append([]string{"--map-root-user"}, args...)
	}
	c := exec.CommandContext(t.Context(), "unshare", args...)
	c.Dir = t.TempDir()
	c.Env = append(os.Environ(), "TMPDIR="+dir, "PATH="+linked(t)+string(os.PathListSeparator)+os.Getenv("PATH"))
	var stdout, stderr strings.Builder
	c.Stdout, c.Stderr = &stdout, &stderr
	err := c.Run()
	if !strings.HasPrefix(stdout.String(), mounted) {
		t.Skip("a small disk cannot be mounted here: ", err, stderr.String())
	}
	exit := new(exec.ExitError)
	expect.MustTrue(t, errors.As(err, &exit), err)
	expect.Equal(t, exit.ExitCode(), 125, stderr.String())
	expect.Equal(t, stdout.String(), mounted)
	expect.Contains(t, stderr.String(), "no space left on device; make room in "+dir+", or set TMPDIR to a directory on another disk\n")
}
