package fetch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// runScript is what makes a directory a program.
const runScript = "run.sh"

// ready says whether ./$program/ is complete and of this source.
func (j *job) ready() (Program, bool, error) {
	info, err := os.Stat(filepath.Join(j.dir, runScript))
	if errors.Is(err, fs.ErrNotExist) {
		return Program{}, false, nil
	}
	if errors.Is(err, syscall.ENOTDIR) {
		return Program{}, false, fmt.Errorf("./%s is in the way: it is not a directory", j.program)
	}
	if err == nil {
		err = j.checkPlanted()
	}
	if err != nil {
		return Program{}, false, err
	}
	rec, err := readRecord(j.dir)
	if err != nil {
		return Program{}, false, err
	}
	if rec == nil && (installing(j.dir) || !j.hasScript()) {
		// setup.sh of a fetch under way, or of a dead one, made that run.sh; or it is being removed
		return Program{}, false, nil
	}
	if rec != nil && rec.ID != sourceID(j.src) {
		return Program{}, false, j.otherSource(rec)
	}
	if err := checkScript(info); err != nil {
		return Program{}, false, err
	}
	if err := j.executable(filepath.Join(j.dir, runScript), info.Mode()); err != nil {
		return Program{}, false, err
	}
	if rec == nil {
		return Program{Dir: j.dir}, true, nil
	}
	if !used(j.dir) {
		return Program{}, false, nil // it is being removed; Fetch waits for the end of that
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
	return fmt.Errorf("./%s %w: it came from %s, the task asks for %s; give the program another name, or remove the directory",
		j.program, ErrOtherSource, rec.Source, asked)
}

// checkScript says what is wrong with a run.sh.
func checkScript(info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return errors.New("run.sh is a directory; it must be the program's script")
	case !info.Mode().IsRegular():
		return fmt.Errorf("run.sh is not a regular file but a %s", kind(info.Mode()))
	case info.Size() == 0:
		return errors.New("run.sh is empty (0 bytes)")
	}
	return nil
}

// checkRunScript looks for a good run.sh at the top of what was fetched, and makes it executable
// where it is not. The tree is nobody else's.
func (j *job) checkRunScript(tree string) error {
	name := filepath.Join(tree, runScript)
	info, err := os.Lstat(name)
	if err == nil {
		if err := checkScript(info); err != nil {
			return err
		}
		return os.Chmod(name, j.wanted(name, info.Mode()))
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if found := tooDeep(tree); found != "" {
		return fmt.Errorf("run.sh is one level too deep, at %q; pack the archive from inside that directory", found)
	}
	return errors.New("no run.sh at the top level of the archive")
}

// tooDeep finds the usual mistake: the directory was packed, and not what is in it.
func tooDeep(tree string) string {
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
