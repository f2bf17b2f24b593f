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

// ParseTarget checks where files are to be delivered to: rsync:PATH with an absolute path,
// rsync:HOST:PATH or rsync:rsync://HOST/MODULE/PATH (docs/configuration.md, "[worker]"). The error
// names the target, without credentials, and what is wrong with it.
func ParseTarget(target string) error {
	_, err := parseTarget(target)
	return err
}

// parseTarget returns what rsync calls the target.
func parseTarget(target string) (location string, err error) {
	location, found := strings.CutPrefix(target, tdf.SchemeRsync+":")
	switch {
	case !found, location == "", strings.HasSuffix(location, ":"):
		err = errors.New("expected rsync:PATH, rsync:HOST:PATH or rsync:rsync://HOST/MODULE/PATH")
	case strings.HasSuffix(location, "/.."):
		err = errors.New("the path ends in .., which says nothing about where it is")
	default:
		err = likeSource(location)
	}
	if err != nil {
		return "", fmt.Errorf("target %q: %w", tdf.HideCredentials(target), err)
	}
	return location, nil
}

// likeSource applies the rules for a file there: they are those of the place, too.
func likeSource(location string) error {
	src, err := tdf.ParseSource(tdf.SchemeRsync + ":" + strings.TrimRight(location, "/") + "/run.sh")
	if err != nil {
		return errors.Unwrap(err)
	}
	if src.Host == "" && !filepath.IsAbs(location) {
		return errors.New("a path on the worker's machine must be absolute")
	}
	return nil
}

// Deliver copies what is in a directory to target/sub by rsync; sub, as 17/0, is made there, and so
// is the last part of target's path. Files and directories that are there already are replaced
// or added to. Modes are those that are usual there, never setuid; links stay links; what is
// no file, directory or link is left out. It needs rsync, also for a local path, and no question
// may be asked. It waits [DefaultIdleTimeout] for the other end to go on. While it runs it has a directory
// of its own in tmp, which is made if it is not there: who is killed leaves that behind.
//
// The error names the target without credentials, and the reason. It wraps that for which ctx
// ended.
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
		"--omit-dir-times",   // those above are others', too
		"--chmod=Du+rwx,a-s", // what is made there can be looked after there
		"--relative", "--", "./"+sub+"/", strings.TrimRight(location, "/")+"/")
	out, err := runRsync(ctx, stage, args)
	if err != nil {
		return deliverError(err, out)
	}
	return nil
}

// stageAs makes a directory in tmp in which dir is to be found as sub. rsync sends a link that
// is part of the path that it is given as the directory that it leads to: so it makes directories
// at the other end, which no other option does with every rsync.
func stageAs(tmp, dir, sub string) (stage string, err error) {
	if !filepath.IsLocal(sub) || filepath.Clean(sub) != sub || sub == "." {
		return "", fmt.Errorf("%q is no path below the target", sub)
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
	3:             "the directory cannot be used or made there",
	11:            "it cannot be written there; all but the last part of the target's path must be there",
	rsyncNotThere: "not everything could be read here or written there",
	rsyncVanished: "files vanished meanwhile",
}

// deliverError does not say that this machine's disk is full: it is the target's.
func deliverError(err error, out string) error {
	_, text := rsyncFailed(err, deliverCodes)
	switch {
	case text == "":
		return err
	case strings.Contains(out, noSpace):
		return fmt.Errorf("no space is left there: %s", out)
	case out == "":
		return errors.New(text)
	}
	return fmt.Errorf("%s: %s", text, out)
}
