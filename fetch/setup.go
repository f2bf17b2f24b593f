package fetch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

const setupScript = "setup.sh"

// lockDescriptor is the descriptor of the program's lock in setup.sh. It is so high that shell scripts do not use it.
const lockDescriptor = 99

// setupEnv lists the environment variables that setup.sh inherits. setup.sh needs them to find interpreters and
// compilers, and to download packages through a proxy. They contain no address or password of Redis.
var setupEnv = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TMPDIR",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
}

// setup runs the archive's setup.sh. It runs in the program's final directory, because a Python venv contains absolute
// paths.
func (j *job) setup(ctx context.Context) error {
	script := filepath.Join(j.dir, setupScript)
	f, _, err := regular(os.OpenFile(script, readFlags, 0))
	if err != nil {
		return err
	}
	err = f.Chmod(0o755)
	f.Close()
	if err != nil {
		return err
	}
	if err := j.runSetup(ctx); err != nil {
		return err
	}
	if _, err := os.Lstat(filepath.Join(j.dir, runScript)); err == nil {
		return errors.New("setup.sh made a run.sh; put run.sh into the archive instead")
	}
	return nil
}

func (j *job) runSetup(ctx context.Context) error {
	out, err := j.execSetup(ctx)
	for tries := 0; errors.Is(err, syscall.ETXTBSY) && tries < 100; tries++ {
		// Another thread may have forked while this process wrote the script. The new process then keeps the script
		// open until it calls exec.
		if err := sleep(ctx, 10*time.Millisecond); err != nil {
			return err
		}
		out, err = j.execSetup(ctx)
	}
	j.Log.Debug("setup.sh ended", "program", j.program, "err", err, "output", out)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOEXEC), errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w (is the interpreter of its first line installed, and does that line end without CR?)",
			err)
	case out == "":
		return fmt.Errorf("%w, without output", err)
	}
	return fmt.Errorf("%w: %s", err, out)
}

func (j *job) execSetup(ctx context.Context) (string, error) {
	if j.Setup != nil {
		var out tail
		printed, err := j.Setup(ctx, j.dir, environment(setupEnv), j.locked)
		_, _ = out.Write(printed)
		return out.lines(), err
	}
	cmd := exec.CommandContext(ctx, "./"+setupScript)
	cmd.Dir = j.dir
	cmd.Env = environment(setupEnv)
	cmd.ExtraFiles = make([]*os.File, lockDescriptor-2)
	cmd.ExtraFiles[lockDescriptor-3] = j.locked
	return runGroup(cmd, nil)
}
