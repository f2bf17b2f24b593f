package fetch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// runScript is the name of the file without which a directory is not a program.
const runScript = "run.sh"

// ready does the work of [Fetcher.Ready].
func (j *job) ready() (Program, bool, error) {
	info, err := os.Stat(filepath.Join(j.dir, runScript))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Program{}, false, nil
	case errors.Is(err, syscall.ENOTDIR):
		return Program{}, false, fmt.Errorf("./%s is not a directory; remove it", j.program)
	case err != nil:
		return Program{}, false, err
	}
	if err := j.checkPlanted(); err != nil {
		return Program{}, false, err
	}
	rec, err := readRecord(j.dir)
	if errors.As(err, new(damagedError)) && hasJournal(j.dir) {
		return Program{}, false, nil // Fetch undoes the installation, and fetches the program again
	}
	if err != nil {
		return Program{}, false, err
	}
	if rec == nil && (hasJournal(j.dir) || !j.hasScript()) {
		// setup.sh of an unfinished fetch created this run.sh, or Remove has just removed it
		return Program{}, false, nil
	}
	if rec != nil && rec.ID != sourceID(j.src) {
		return Program{}, false, j.otherSource(rec)
	}
	if err := checkScript(info); err != nil {
		return Program{}, false, err
	}
	if err := j.ensureExecutable(filepath.Join(j.dir, runScript), info.Mode()); err != nil {
		return Program{}, false, err
	}
	if rec == nil {
		return Program{Dir: j.dir}, true, nil
	}
	if !markUsed(j.dir) {
		return Program{}, false, nil // the program is being removed; Fetch waits for the end of the removal
	}
	return Program{Dir: j.dir, SHA256: rec.SHA256}, true, nil
}

func (j *job) hasScript() bool {
	_, err := os.Lstat(filepath.Join(j.dir, runScript))
	return err == nil
}

func (j *job) otherSource(rec *record) error {
	asked := j.src.String()
	if asked == rec.Source {
		asked += " with other credentials"
	}
	return fmt.Errorf("./%s %w: the program was fetched from %s, and the task names %s; give the program another "+
		"name, or remove the directory",
		j.program, ErrOtherSource, rec.Source, asked)
}

// checkScript returns an error if run.sh is empty or not a regular file.
func checkScript(info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return errors.New("run.sh is a directory; it must be the program's script")
	case !info.Mode().IsRegular():
		return fmt.Errorf("run.sh is a %s, not a regular file", kind(info.Mode()))
	case info.Size() == 0:
		return errors.New("run.sh is empty (0 bytes)")
	}
	return nil
}

// checkRunScript checks the run.sh at the top of the staged tree, and makes it executable. It changes the mode without
// other checks, because no program uses the staged tree yet.
func (j *job) checkRunScript(tree string) error {
	name := filepath.Join(tree, runScript)
	info, err := os.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		if found := nestedScript(tree); found != "" {
			return fmt.Errorf("run.sh is one level too deep, at %q; pack the archive from inside that directory", found)
		}
		return errors.New("no run.sh at the top level of the archive")
	}
	if err != nil {
		return err
	}
	if err := checkScript(info); err != nil {
		return err
	}
	return os.Chmod(name, j.executableMode(name, info.Mode()))
}

// nestedScript returns the path of a run.sh one level below the top. Users often pack the directory itself instead of
// its contents, so that run.sh is on this level.
func nestedScript(tree string) string {
	entries, _ := os.ReadDir(tree)
	for _, e := range entries {
		if _, err := os.Lstat(filepath.Join(tree, e.Name(), runScript)); err == nil {
			return e.Name() + "/" + runScript
		}
	}
	return ""
}

func kind(m fs.FileMode) string {
	switch {
	case m&fs.ModeSymlink != 0:
		return "symbolic link"
	case m&fs.ModeNamedPipe != 0:
		return "named pipe"
	case m&fs.ModeSocket != 0:
		return "socket"
	case m&fs.ModeDevice != 0:
		return "device"
	}
	return "special file"
}

// ensureExecutable makes run.sh executable for the programs' user.
func (j *job) ensureExecutable(path string, mode fs.FileMode) error {
	if j.executableMode(path, mode) == mode.Perm() {
		return nil
	}
	err := j.makeExecutable(path)
	if mode&0o111 != 0 {
		// the programs' user may be able to execute run.sh nevertheless; if not, the start of the program fails
		return nil
	}
	return err
}

// executableMode returns the mode that run.sh needs. The caller passes the present mode of run.sh. If programs run as
// another user, this process cannot test whether that user may execute run.sh. In this case, the returned mode lets
// everyone who can read run.sh also execute it.
func (j *job) executableMode(path string, mode fs.FileMode) fs.FileMode {
	now := mode.Perm()
	switch {
	case now&0o111 == 0:
		return 0o755
	case j.User != nil || unix.Access(path, unix.X_OK) != nil:
		return now | now&0o444>>2
	}
	return now
}

var errLinkNotExecutable = errors.New(
	"run.sh is a symbolic or hard link to a file that is not executable; make that file executable (chmod +x)")

// makeExecutable changes the mode of run.sh. If run.sh is a symbolic link or has other hard links, makeExecutable
// returns an error, because the file may not belong to the program.
func (j *job) makeExecutable(path string) error {
	f, info, err := regular(os.OpenFile(path, readFlags, 0))
	switch {
	case errors.Is(err, unix.ELOOP):
		return errLinkNotExecutable
	case err != nil:
		return err
	}
	defer f.Close()
	if hardLinks(info) > 1 {
		return errLinkNotExecutable
	}
	return f.Chmod(j.executableMode(path, info.Mode()))
}
