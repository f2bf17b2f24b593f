package fetch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tdf-framework/tdf/internal/task"
)

// ParseTarget returns an error if target is not a valid address for [Deliver]. These addresses are valid: rsync:PATH
// with an absolute path, rsync:HOST:PATH and rsync:rsync://HOST/MODULE/PATH (docs/configuration.md, "[worker]"). The
// error shows no credentials.
func ParseTarget(target string) error {
	_, err := parseTarget(target)
	return err
}

// parseTarget returns the target in the notation of rsync's command line.
func parseTarget(target string) (location string, err error) {
	location, found := strings.CutPrefix(target, task.SchemeRsync+":")
	switch {
	case !found, location == "", strings.HasSuffix(location, ":"):
		err = errors.New("expected rsync:PATH, rsync:HOST:PATH or rsync:rsync://HOST/MODULE/PATH")
	case strings.HasSuffix(location, "/.."):
		err = errors.New("the path ends in ..; name the directory")
	default:
		err = checkLocation(location)
	}
	if err != nil {
		return "", fmt.Errorf("target %q: %w", task.HideCredentials(target), err)
	}
	return location, nil
}

// checkLocation returns an error if a target breaks the rules for sources.
func checkLocation(location string) error {
	src, err := task.ParseSource(task.SchemeRsync + ":" + strings.TrimRight(location, "/") + "/run.sh")
	if err != nil {
		return errors.Unwrap(err)
	}
	if src.Host == "" && !filepath.IsAbs(location) {
		return errors.New("a path on the worker's machine must be absolute")
	}
	return nil
}

// Deliver copies the contents of dir to target/sub with rsync. sub must be a relative path, such as 17/0.
//
//   - Deliver creates the directory sub. In the path of target, it creates only the last directory.
//   - Deliver replaces existing files, and adds files to existing directories.
//   - Copied files get the default modes of the target, without setuid and setgid bits.
//   - Deliver copies links as links. It skips special files.
//   - Deliver needs rsync even for a local path. It fails if rsync needs a password that is not in the environment.
//   - Deliver fails if the other end sends no data for [DefaultIdleTimeout].
//   - Deliver uses a temporary directory in tmp, and creates tmp if necessary. If the process is killed, the temporary
//     directory stays.
//
// The error shows no credentials. If ctx ended the delivery, the error wraps the cause of ctx.
func Deliver(ctx context.Context, tmp, dir, sub, target string) error {
	location, err := parseTarget(target)
	if err != nil {
		return err
	}
	if err := deliver(ctx, tmp, dir, sub, location); err != nil {
		return fmt.Errorf("delivering to %s: %w", task.HideCredentials(strings.TrimRight(target, "/")+"/"+sub), err)
	}
	return nil
}

func deliver(ctx context.Context, tmp, dir, sub, location string) error {
	stage, err := stageAs(tmp, dir, sub)
	if err != nil {
		return err
	}
	defer os.RemoveAll(stage)
	args := append(rsyncArgs(location, DefaultIdleTimeout),
		"--recursive", "--links", "--times",
		// rsync must not set the times of directories, because deliveries share the directories above sub
		"--omit-dir-times",
		"--chmod=Du+rwx,a-s", // the owner of the target can enter and delete directories
		"--relative", "--", "./"+sub+"/", strings.TrimRight(location, "/")+"/")
	cmd := rsyncCommand(ctx, stage, args)
	cmd.Env = append(cmd.Env, environment([]string{passwordEnv})...) // the configuration names the target
	out, err := runRsync(ctx, cmd, nil)
	if err != nil {
		return deliverError(err, out)
	}
	return nil
}

// stageAs creates a directory in tmp that contains a symbolic link with the path sub to dir. rsync follows a link in
// the path that it copies. With the option --relative, rsync creates the path sub at the other end. Some versions of
// rsync have no other option that creates this path.
func stageAs(tmp, dir, sub string) (stage string, err error) {
	if !filepath.IsLocal(sub) || filepath.Clean(sub) != sub || sub == "." {
		return "", fmt.Errorf("%q is not a path below the target", sub)
	}
	if info, err := os.Lstat(dir); err != nil {
		return "", err
	} else if !info.IsDir() {
		return "", fmt.Errorf("%s is not a directory", dir)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	if err = os.MkdirAll(tmp, 0o755); err != nil {
		return "", err
	}
	if stage, err = os.MkdirTemp(tmp, "deliver-"); err != nil {
		return "", err
	}
	if err := linkAs(dir, filepath.Join(stage, sub)); err != nil {
		os.RemoveAll(stage)
		return "", err
	}
	return stage, nil
}

// linkAs creates a symbolic link, and the directories above it.
func linkAs(target, link string) error {
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		return err
	}
	return os.Symlink(target, link)
}

var deliverCodes = map[int]string{
	3:             "the target's directory cannot be used or created",
	11:            "the target cannot be written; all but the last part of its path must exist",
	rsyncNotThere: "some files could not be read here or written at the target",
	rsyncVanished: "files vanished during the delivery",
}

// deliverError adds an explanation to an error of rsync. If rsync reports a full disk, the disk of the target is full,
// and not the disk of this machine.
func deliverError(err error, out string) error {
	_, text := rsyncFailed(err, deliverCodes)
	switch {
	case text == "":
		return err
	case strings.Contains(out, noSpace):
		return fmt.Errorf("no space is left at the target: %s", out)
	case out == "":
		return errors.New(text)
	}
	return fmt.Errorf("%s: %s", text, out)
}
