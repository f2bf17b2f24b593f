package fetch

import (
	"cmp"
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
	into := j.staged(stagedRsync)
	if err := os.Mkdir(into, 0o700); err != nil {
		return "", err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go j.watchSize(ctx, into, cancel)
	args := append(rsyncArgs(j.src.Location, j.IdleTimeout),
		"--copy-links", // and nothing recursive: one file
		"--chmod=F600", // readable here, whatever it was there
		"--", j.src.Location, into+"/")
	out, err := runRsync(ctx, j.Dir, args)
	if err != nil {
		return "", rsyncError(err, out)
	}
	return j.takeOne(ctx, into, out)
}

// rsyncArgs are those with which a location is reached, be it to read or to write.
func rsyncArgs(location string, idle time.Duration) []string {
	args := []string{
		"--secluded-args", // no shell of the other host sees the path
		"--timeout=" + strconv.Itoa(seconds(idle)),
	}
	if strings.HasPrefix(location, "rsync://") {
		return append(args, "--no-motd", "--contimeout="+strconv.Itoa(connectSeconds))
	}
	// It must not ask for a password or whether a host's key is the right one.
	return append(args, "-e", fmt.Sprintf("ssh -oBatchMode=yes -oConnectTimeout=%d", connectSeconds))
}

// runRsync returns the last lines that it printed. The error is an [exec.ExitError], which
// rsyncFailed explains, or says why rsync did not get that far.
func runRsync(ctx context.Context, dir string, args []string) (string, error) {
	program, err := exec.LookPath("rsync")
	if err != nil {
		return "", here{errors.New("rsync is not installed on this worker (apt-get install rsync)")}
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.Env = append(environment(rsyncEnv), "LC_ALL=C")
	out, err := runGroup(cmd)
	switch {
	case err == nil:
		return out, nil
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case !errors.As(err, new(*exec.ExitError)):
		return "", here{fmt.Errorf("rsync could not be run: %w", err)}
	}
	return out, err
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

// Exit statuses of rsync that say something about the source, wherever it is fetched.
const (
	rsyncRefused  = 5
	rsyncNotThere = 23
	rsyncVanished = 24
)

// rsyncCodes are the exit statuses that a user can do something about. It is chance whether rsync
// ends with that of the remote shell, 127 or 255, or with its own 12: it does not wait for a shell
// that ends a moment after the connection. What the shell printed is told in either case.
var rsyncCodes = map[int]string{
	rsyncRefused: "the daemon refused",
	10:           "no connection",
	12:           "the connection broke, or there is no rsync on the other host",
	30:           "nothing came for too long",
	35:           "the daemon did not answer",
	127:          "there is no rsync on the other host",
	255:          "ssh failed",
}

// fetchCodes are those that mean something else, or nothing, where files are sent.
var fetchCodes = map[int]string{
	rsyncNotThere: "the file is not there, or cannot be read",
	rsyncVanished: "the file vanished",
}

const noSpace = "No space left on device"

// rsyncError explains how a fetch failed, and says whether that is about this host.
func rsyncError(err error, out string) error {
	code, text := rsyncFailed(err, fetchCodes)
	switch {
	case text == "":
		return err
	case strings.Contains(out, noSpace):
		return fmt.Errorf("%s: %w", text, syscall.ENOSPC)
	case out != "":
		text += ": " + out
	}
	switch code {
	case rsyncRefused, rsyncNotThere, rsyncVanished:
		return errors.New(text)
	}
	return here{errors.New(text)}
}

// rsyncFailed returns rsync's exit status and what it means; "" for other errors.
func rsyncFailed(err error, codes map[int]string) (code int, text string) {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return 0, ""
	}
	code, text = exit.ExitCode(), err.Error()
	if known := cmp.Or(codes[code], rsyncCodes[code]); known != "" {
		text += " (" + known + ")"
	}
	return code, text
}
