package fetch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// rsyncEnv is what rsync and ssh get of the worker's environment. RSYNC_RSH and its kin name
// programs to run, and are not among them.
var rsyncEnv = []string{"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "SSH_AUTH_SOCK", "RSYNC_PASSWORD"}

// connectSeconds is how long a host may take to answer, for ssh and for daemons.
const connectSeconds = 15

// rsync takes HOST:PATH and rsync://…, into a directory in which there must be one file then.
func (j *job) rsync(ctx context.Context) (string, error) {
	program, err := exec.LookPath("rsync")
	if err != nil {
		return "", errors.New("rsync is not installed on this worker (apt-get install rsync)")
	}
	into := j.staged(stagedRsync)
	if err := os.Mkdir(into, 0o700); err != nil {
		return "", err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go j.watchSize(ctx, into, cancel)
	cmd := exec.CommandContext(ctx, program, j.rsyncArgs(into)...)
	cmd.Dir = j.Dir
	cmd.Env = append(environment(rsyncEnv), "LC_ALL=C")
	out, err := runGroup(cmd)
	if err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		return "", rsyncError(err, out)
	}
	return j.takeOne(ctx, into, out)
}

func (j *job) rsyncArgs(into string) []string {
	args := []string{
		"--copy-links",    // and nothing recursive: one file
		"--chmod=F600",    // readable here, whatever it was there
		"--secluded-args", // no shell of the other host sees the path
		"--timeout=" + strconv.Itoa(seconds(j.IdleTimeout)),
	}
	if strings.HasPrefix(j.src.Location, "rsync://") {
		args = append(args, "--no-motd", "--contimeout="+strconv.Itoa(connectSeconds))
	} else {
		// It must not ask for a password or whether a host's key is the right one.
		args = append(args, "-e", fmt.Sprintf("ssh -oBatchMode=yes -oConnectTimeout=%d", connectSeconds))
	}
	return append(args, "--", j.src.Location, into+"/")
}

func seconds(d time.Duration) int { return max(1, int((d+time.Second-1)/time.Second)) }

// watchSize ends an rsync whose other end sends more than the limit. Its own --max-size trusts
// what that end says.
func (j *job) watchSize(ctx context.Context, dir string, cancel context.CancelCauseFunc) {
	for sleep(ctx, 100*time.Millisecond) == nil {
		if size(dir) > j.Limits.Bytes {
			cancel(j.Limits.tooManyBytes())
		}
	}
}

func size(dir string) (sum int64) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			sum += info.Size()
		}
	}
	return sum
}

// takeOne spools the one file that came.
func (j *job) takeOne(ctx context.Context, dir, out string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	if len(entries) != 1 || !entries[0].Type().IsRegular() {
		if strings.Contains(out, "skipping directory") {
			return "", errors.New("it is a directory; a source is one file")
		}
		return "", fmt.Errorf("%d files came instead of one regular file: %s", len(entries), out)
	}
	f, err := os.OpenInRoot(dir, entries[0].Name())
	if err != nil {
		return "", err
	}
	defer f.Close()
	defer os.Remove(filepath.Join(dir, entries[0].Name()))
	return j.spool(ctx, f)
}

// rsyncCodes are the exit statuses that a user can do something about.
var rsyncCodes = map[int]string{
	5:   "the daemon refused",
	10:  "no connection",
	12:  "the connection broke, or there is no rsync on the other host",
	23:  "the file is not there, or cannot be read",
	24:  "the file vanished",
	30:  "nothing came for too long",
	35:  "the daemon did not answer",
	127: "no such command on this or the other host",
	255: "ssh failed",
}

func rsyncError(err error, out string) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return fmt.Errorf("rsync could not be run: %w", err)
	}
	text := err.Error()
	if known := rsyncCodes[exit.ExitCode()]; known != "" {
		text += " (" + known + ")"
	}
	if strings.Contains(out, "No space left on device") {
		return fmt.Errorf("%s: %w", text, syscall.ENOSPC)
	}
	if out != "" {
		text += ": " + out
	}
	return errors.New(text)
}
