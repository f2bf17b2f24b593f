package main

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// If the redis-server of a call of tdf run is killed, the call ends with an error, and leaves nothing behind. The results
// that it had before are printed.
func TestRunWhoseRedisIsKilled(t *testing.T) {
	t.Parallel()
	const script = `test $1 = 1 || for p in /proc/[0-9]*; do
	grep -qs "unixsocket:$TMPDIR/" $p/cmdline && kill -9 ${p#/proc/}
done
echo $1`
	dir := t.TempDir()
	c := exec.CommandContext(t.Context(), linked(t)+"/tdf", "run", "-j", "1", "--", "sh", "-c", script, "-", "{}", ":::", "1", "2", "3")
	c.Dir = t.TempDir()
	c.Env = append(os.Environ(), "TMPDIR="+dir, "HOME="+c.Dir, "XDG_CONFIG_HOME="+c.Dir) // no tdf up of this user is found
	var stdout, stderr strings.Builder
	c.Stdout, c.Stderr = &stdout, &stderr
	err := c.Run()
	exit := new(exec.ExitError)
	expect.MustTrue(t, errors.As(err, &exit), err)
	expect.Equal(t, exit.ExitCode(), 125, stderr.String())
	expect.Equal(t, stdout.String(), "1\n")
	expect.Contains(t, stderr.String(), "the Redis of this call has ended, so some commands have no result")
	expect.Len(t, expect.Result(os.ReadDir(dir)).Value(t), 0, "what is left")
}
