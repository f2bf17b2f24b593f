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

// rsyncEnv names the environment variables that rsync and ssh inherit. Variables that name programs to run, such as
// RSYNC_RSH, are not in the list.
var rsyncEnv = []string{"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "SSH_AUTH_SOCK", "RSYNC_PASSWORD"}

// connectSeconds is the connection timeout for ssh and for rsync daemons.
const connectSeconds = 15

// rsync spools a source HOST:PATH or rsync://…. It copies the source into an empty directory, which must contain one file
// afterwards.
func (j *job) rsync(ctx context.Context) (string, error) {
	into := j.staged(stagedRsync)
	if err := os.Mkdir(into, 0o700); err != nil {
		return "", err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go j.watchSize(ctx, into, cancel)
	args := append(rsyncArgs(j.src.Location, j.IdleTimeout),
		"--copy-links", // --recursive is missing, so rsync copies one file
		"--chmod=F600", // this process can read the copy
		"--", j.src.Location, into+"/")
	out, err := runRsync(ctx, j.Dir, args)
	if err != nil {
		return "", rsyncError(err, out)
	}
	return j.takeOne(ctx, into, out)
}

// rsyncArgs returns the arguments that reach a location, for reading and for writing.
func rsyncArgs(location string, idle time.Duration) []string {
	args := []string{
		"--secluded-args", // the shell of the other host does not interpret the path
		"--timeout=" + strconv.Itoa(seconds(idle)),
	}
	if strings.HasPrefix(location, "rsync://") {
		return append(args, "--no-motd", "--contimeout="+strconv.Itoa(connectSeconds))
	}
	// BatchMode: ssh asks for no password and no confirmation of a host key.
	return append(args, "-e", fmt.Sprintf("ssh -oBatchMode=yes -oConnectTimeout=%d", connectSeconds))
}

// runRsync runs rsync and returns its last lines of output. If rsync failed, the error is an [exec.ExitError], which
// rsyncFailed explains.
func runRsync(ctx context.Context, dir string, args []string) (string, error) {
	program, err := exec.LookPath("rsync")
	if err != nil {
		return "", localError{errors.New("rsync is not installed on this worker (apt-get install rsync)")}
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
		return "", localError{fmt.Errorf("run rsync: %w", err)}
	}
	return out, err
}

func seconds(d time.Duration) int { return max(1, int((d+time.Second-1)/time.Second)) }

// watchSize cancels an rsync that writes more than the limit. The option --max-size is not enough, because it trusts
// the other end.
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

// takeOne spools the single file that rsync copied.
func (j *job) takeOne(ctx context.Context, dir, out string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	if len(entries) != 1 || !entries[0].Type().IsRegular() {
		if strings.Contains(out, "skipping directory") {
			return "", errors.New("the source is a directory; a source must be one file")
		}
		return "", fmt.Errorf("rsync copied %d files instead of one regular file: %s", len(entries), out)
	}
	f, err := os.OpenInRoot(dir, entries[0].Name())
	if err != nil {
		return "", err
	}
	defer f.Close()
	defer os.Remove(filepath.Join(dir, entries[0].Name()))
	return j.spool(ctx, f)
}

// Exit statuses of rsync whose cause is the source, not this host.
const (
	rsyncRefused  = 5
	rsyncNotThere = 23
	rsyncVanished = 24
)

// rsyncCodes explains the exit statuses that a user can do something about. If the remote shell fails, rsync does not
// wait for it. So rsync returns either the shell's exit status (127, 255) or its own status 12, by chance. The output
// contains the shell's message in both cases.
var rsyncCodes = map[int]string{
	rsyncRefused: "the daemon refused",
	10:           "no connection",
	12:           "the connection broke, or the other host has no rsync",
	30:           "no data for too long",
	35:           "the daemon did not answer",
	127:          "the other host has no rsync",
	255:          "ssh failed",
}

// fetchCodes explains further exit statuses of a fetch. deliverCodes explains further exit statuses of a delivery.
var fetchCodes = map[int]string{
	rsyncNotThere: "the file does not exist, or cannot be read",
	rsyncVanished: "the file vanished",
}

const noSpace = "No space left on device"

// rsyncError explains the error of a fetch. It marks an error that this host caused.
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
	return localError{errors.New(text)}
}

// rsyncFailed returns rsync's exit status and its explanation. If err is no exit status, the explanation is "".
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
