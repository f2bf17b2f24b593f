package fetch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tdf-framework/tdf"
)

// ParseTarget returns an error if target is not a valid address of a delivery: rsync:PATH with an absolute path,
// rsync:HOST:PATH or rsync:rsync://HOST/MODULE/PATH (docs/configuration.md, "[worker]"). The error names the target
// without its credentials.
func ParseTarget(target string) error {
	_, err := parseTarget(target)
	return err
}

// parseTarget returns the target in rsync's notation.
func parseTarget(target string) (location string, err error) {
	location, found := strings.CutPrefix(target, tdf.SchemeRsync+":")
	switch {
	case !found, location == "", strings.HasSuffix(location, ":"):
		err = errors.New("expected rsync:PATH, rsync:HOST:PATH or rsync:rsync://HOST/MODULE/PATH")
	case strings.HasSuffix(location, "/.."):
		err = errors.New("the path ends in ..; name the directory")
	default:
		err = checkLocation(location)
	}
	if err != nil {
		return "", fmt.Errorf("target %q: %w", tdf.HideCredentials(target), err)
	}
	return location, nil
}

// checkLocation checks a target by the rules for a source.
func checkLocation(location string) error {
	src, err := tdf.ParseSource(tdf.SchemeRsync + ":" + strings.TrimRight(location, "/") + "/run.sh")
	if err != nil {
		return errors.Unwrap(err)
	}
	if src.Host == "" && !filepath.IsAbs(location) {
		return errors.New("a path on the worker's machine must be absolute")
	}
	return nil
}

// Deliver copies the contents of dir to target/sub by rsync. sub is a relative path such as 17/0.
//
//   - Deliver creates sub and the last part of target's path.
//   - Deliver replaces existing files, and adds files to existing directories.
//   - Copied files get the default modes of the target. They are never setuid.
//   - Deliver copies links as links. It skips special files.
//   - Deliver needs rsync even for a local path. rsync must not ask for a password.
//   - Deliver fails if the other end is silent for [DefaultIdleTimeout].
//   - Deliver uses a temporary directory in tmp, and creates tmp if necessary. If the process is killed, the temporary
//     directory stays.
//
// The error names the target without credentials. It wraps the cause of ctx if ctx ended the delivery.
func Deliver(ctx context.Context, tmp, dir, sub, target string) error {
	location, err := parseTarget(target)
	if err != nil {
		return err
	}
	if err := deliver(ctx, tmp, dir, sub, location); err != nil {
		return fmt.Errorf("delivering to %s: %w", tdf.HideCredentials(strings.TrimRight(target, "/")+"/"+sub), err)
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
		"--omit-dir-times",   // do not set times of directories: other deliveries share the directories above sub
		"--chmod=Du+rwx,a-s", // the owner of the target can enter and delete directories
		"--relative", "--", "./"+sub+"/", strings.TrimRight(location, "/")+"/")
	out, err := runRsync(ctx, stage, args)
	if err != nil {
		return deliverError(err, out)
	}
	return nil
}

// stageAs makes a directory in tmp, with a symbolic link sub that points to dir. rsync follows links in the path that it
// copies. With --relative, rsync creates sub at the other end. No other option does that with every version of rsync.
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
	link := filepath.Join(stage, sub)
	err = os.MkdirAll(filepath.Dir(link), 0o755)
	if err == nil {
		err = os.Symlink(dir, link)
	}
	if err != nil {
		os.RemoveAll(stage)
	}
	return stage, err
}

var deliverCodes = map[int]string{
	3:             "the target's directory cannot be used or made",
	11:            "the target cannot be written; all but the last part of its path must exist",
	rsyncNotThere: "some files could not be read here or written at the target",
	rsyncVanished: "files vanished during the delivery",
}

// deliverError explains an error of rsync. If rsync reports a full disk, it is the target's disk, not this machine's.
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
