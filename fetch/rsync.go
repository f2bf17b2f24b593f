package fetch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// rsyncEnv lists the environment variables that rsync and ssh inherit. Variables whose values are programs to run, such
// as RSYNC_RSH, are not in the list.
var rsyncEnv = []string{"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "SSH_AUTH_SOCK"}

// connectSeconds is the connection timeout for ssh and for rsync daemons.
const connectSeconds = 15

// rsync writes the content of an rsync source to the file payload. First it copies the source into an empty directory,
// which must then contain exactly one file. rsync and ssh run as the programs' user, who may be able to read other
// files, and to log in elsewhere, than the user of this process.
func (j *job) rsync(ctx context.Context) (string, error) {
	name := j.staged(stagedRsync)
	if err := errors.Join(os.Mkdir(name, 0o700), j.User.chown(name)); err != nil {
		return "", err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go j.watchSize(ctx, name, cancel)
	args := append(rsyncArgs(j.src.Location, j.IdleTimeout),
		"--copy-links", // without --recursive, rsync copies only one file
		"--chmod=F600", // so that this process can read the copy
		"--", j.src.Location, name+"/")
	cmd := rsyncCommand(ctx, j.Dir, args)
	out, err := runRsync(ctx, cmd, j.User)
	if err != nil {
		return "", rsyncError(err, out)
	}
	return j.takeOne(ctx, name, out)
}

// rsyncArgs returns the arguments that rsync needs to read from a location.
func rsyncArgs(location string, idle time.Duration) []string {
	args := []string{
		"--secluded-args", // the shell of the other host must not interpret the path
		"--timeout=" + strconv.Itoa(seconds(idle)),
	}
	if isDaemon(location) {
		return append(args, "--no-motd", "--contimeout="+strconv.Itoa(connectSeconds))
	}
	// With BatchMode, ssh does not ask for a password or for the confirmation of a host key. Whatever the user's
	// configuration says, the other host gets neither the agent (-a) nor credentials of Kerberos (-k).
	return append(args, "-e", fmt.Sprintf("ssh -a -k -oBatchMode=yes -oConnectTimeout=%d", connectSeconds))
}

// rsyncCommand returns an rsync that runs in dir.
func rsyncCommand(ctx context.Context, dir string, args []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "rsync", args...)
	cmd.Dir = dir
	cmd.Env = append(environment(rsyncEnv), "LC_ALL=C")
	return cmd
}

func isDaemon(location string) bool { return strings.HasPrefix(location, "rsync://") }

// runRsync runs rsync as a user, and returns its last lines of output. If rsync has failed, the error is an
// [exec.ExitError]. rsyncError explains this error.
func runRsync(ctx context.Context, cmd *exec.Cmd, as *User) (string, error) {
	if as != nil {
		cmd.Env = slices.Concat(environment([]string{"PATH"}), []string{"LC_ALL=C"}, as.Env)
	}
	out, err := runGroup(cmd, as)
	switch {
	case err == nil:
		return out, nil
	case errors.Is(err, exec.ErrNotFound):
		return "", localError{errors.New("rsync is not installed on this worker (apt-get install rsync)")}
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case !errors.As(err, new(*exec.ExitError)):
		return "", localError{fmt.Errorf("run rsync: %w", err)}
	}
	return out, err
}

func seconds(d time.Duration) int { return max(1, int((d+time.Second-1)/time.Second)) }

// watchSize cancels an rsync that writes more bytes than the limit. The option --max-size is not enough, because it
// trusts the other end.
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

// takeOne writes the content of the single file that rsync copied as a user to the file payload.
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
	name := filepath.Join(dir, entries[0].Name())
	f, info, err := regular(os.OpenFile(name, readFlags, 0))
	if err != nil {
		return "", err
	}
	defer f.Close()
	defer os.Remove(name)
	if !j.User.owns(info) {
		return "", errors.New("the copy belongs to another user") // a hard link of a program that runs meanwhile
	}
	return j.spool(ctx, f)
}

// Exit statuses of rsync for errors that the source causes, and not this host.
const (
	rsyncRefused  = 5
	rsyncNotThere = 23
	rsyncVanished = 24
)

// rsyncCodes explains the exit statuses whose cause a user can remove. If the remote shell fails, chance decides
// whether rsync returns the shell's exit status (127, 255) or its own status 12. In both cases, the output contains the
// shell's message.
var rsyncCodes = map[int]string{
	rsyncRefused:  "the daemon refused the request",
	10:            "no connection",
	12:            "the connection broke, or the other host has no rsync",
	30:            "no data for too long",
	35:            "the daemon did not answer",
	127:           "the other host has no rsync",
	255:           "ssh failed",
	rsyncNotThere: "the file does not exist, or cannot be read",
	rsyncVanished: "the file vanished",
}

const noSpace = "No space left on device"

// rsyncError adds an explanation to an error of rsync during a fetch. If this host caused the error, rsyncError marks
// it as a localError.
func rsyncError(err error, out string) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	code, text := exit.ExitCode(), err.Error()
	if known := rsyncCodes[code]; known != "" {
		text += " (" + known + ")"
	}
	switch {
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
