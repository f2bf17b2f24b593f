package worker

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tdf-framework/tdf/internal/broker"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/worker/record"
	"github.com/tdf-framework/tdf/internal/worker/safepath"
)

// openRecord makes the record of the round's output.
func (e *execution) openRecord(private bool) (*record.Record, error) {
	of := record.RoundRef{Program: e.task.Program, Task: e.task.ID, Round: e.task.Round}
	if e.s.inProcess() {
		return e.s.spool.InMemory(of, private), nil
	}
	return e.s.spool.Open(of, private)
}

// patterns returns the configured names under which a round keeps data: the files for stdout and stderr, and beside
// them the place of scratch/.
func (w *Worker) patterns() [3]string {
	return [3]string{
		w.cfg.TaskOutputFilename, w.cfg.TaskErrorFilename, beside(w.cfg.TaskOutputFilename, ".scratch"),
	}
}

// scratchPlace is the index of scratch/ in patterns. The streams have the indexes 0 and 1.
const scratchPlace = 2

// openOutputDir opens the directory of a configured name.
func (e *execution) openOutputDir(pattern string) (*os.File, error) {
	base, below := splitName(e.s.cfg.Directory, pattern)
	return safepath.Open(base, filepath.Dir(e.fill(below)), e.s.owner(max(e.slot, 1)) != nil)
}

// output returns the path for a configured name. If rounds share that file, the executions of a round share it, too.
func (e *execution) output(pattern string) string {
	if isShared(pattern) {
		return e.path(pattern)
	}
	return e.path(ofExecution(pattern, e.number))
}

// mostExecutions bounds how many executions of one round may have files in a directory.
const mostExecutions = 1000

// chooseNumber sets e.number, the number in the names of the round's files, if it is not set yet: to the first number
// with which all names are free.
func (e *execution) chooseNumber() error {
	if e.number > 0 {
		return nil
	}
	for e.number = 1; e.number <= mostExecutions; e.number++ {
		if e.namesAreFree() {
			return nil
		}
	}
	e.number = 0
	return fmt.Errorf("%s has files of %d executions of this round; move these files away",
		filepath.Dir(e.path(e.s.cfg.TaskOutputFilename)), mostExecutions)
}

func (e *execution) namesAreFree() bool {
	for _, pattern := range e.s.patterns() {
		_, err := os.Lstat(e.output(pattern))
		if err == nil && !isShared(pattern) {
			return false
		}
	}
	return true
}

// scratchPath returns where scratch/ of the round is kept.
func (e *execution) scratchPath() string {
	_ = e.chooseNumber() // keepAs returns the error
	return e.output(e.s.patterns()[scratchPlace])
}

// keepOutputs keeps the output files that have more than limit bytes, and those that the configuration names. It logs
// where they are.
func (e *execution) keepOutputs(limit int64) {
	for stream, always := range [2]bool{e.s.cfg.KeepsOutput(), e.s.cfg.KeepsError()} {
		if !e.record.Unkept(stream, limit) && (!always || !e.record.Unkept(stream, -1)) {
			continue
		}
		path, err := e.keepAs(stream, func(dir *os.File, name string) error {
			return e.record.Keep(stream, dir, name)
		})
		switch {
		case err != nil:
			e.log.Warn("output could not be kept", "error", err)
		case !always:
			e.log.Info("kept output that Redis does not hold", "file", path)
		}
	}
}

// renumberings bounds how often keepAs chooses another number.
const renumberings = 3

// keepAs moves output or scratch/ to the path that the configuration names. It returns the path. If another process has
// taken the name in the meantime, the round gets another number.
func (e *execution) keepAs(place int, move func(to *os.File, name string) error) (path string, err error) {
	pattern := e.s.patterns()[place]
	dir, err := e.openOutputDir(pattern)
	if err != nil {
		return "", err
	}
	defer dir.Close()
	for tries := 0; ; tries++ {
		if err = e.chooseNumber(); err != nil {
			return "", err
		}
		path = e.output(pattern)
		info, missing := os.Lstat(path)
		if isShared(pattern) && missing == nil && info.Mode()&fs.ModeDevice == 0 { // not a name such as /dev/null
			_ = unix.Unlinkat(int(dir.Fd()), filepath.Base(path), 0) // the file of an earlier round
		}
		err = move(dir, filepath.Base(path))
		if !errors.Is(err, fs.ErrExist) || tries == renumberings {
			return path, err
		}
		e.number = 0
	}
}

// settleOutput ends the use of the round's output files. Unless they are dispensable, it keeps all that have output.
func (e *execution) settleOutput(dispensable bool) {
	if e.record == nil {
		return
	}
	limit := int64(0)
	if dispensable {
		limit = math.MaxInt64
	}
	e.keepOutputs(limit)
	e.record.Release()
	e.record = nil
}

// salvageOutputs keeps the output that a killed worker of the given name has left in the directory at path, and has not
// delivered.
func (w *Worker) salvageOutputs(name, path string) {
	log := w.log.With("of", name)
	leftOut := func(file string, why error) {
		log.Warn("output of a killed worker could not be kept", "file", file, "error", why)
	}
	err := record.Salvage(path, func(left *record.Leftover) {
		d := task.Defaults(left.Program, "rsync:/run.sh", "")
		if d.Validate() != nil || left.Task <= 0 || left.Round < 0 {
			leftOut(broker.Short(left.Program), errors.New("a program has changed the name of the file"))
			return
		}
		e := &execution{
			s: &supervisor{Worker: w}, writer: name, task: &task.Task{ID: left.Task, Properties: d},
		}
		e.task.Round = left.Round
		for _, stream := range left.Streams() {
			path, err := e.keepAs(stream, func(dir *os.File, name string) error {
				return left.Keep(stream, dir, name)
			})
			if err != nil {
				leftOut(path, err)
				continue
			}
			log.Info("kept output of a killed worker", "task", left.Task, "round", left.Round, "file", path)
		}
	}, leftOut)
	if err != nil {
		leftOut(path, err)
	}
}

// path returns the path for a file name of the configuration (docs/configuration.md, "[worker]"). A relative name is
// below the working directory.
func (e *execution) path(pattern string) string {
	name := e.fill(pattern)
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(e.s.cfg.Directory, name)
}

// fill replaces the placeholders in a file name of the configuration.
func (e *execution) fill(pattern string) string {
	return strings.NewReplacer(
		"$program", e.task.Program,
		"$worker", cmp.Or(e.writer, e.s.name),
		"$taskId", strconv.FormatInt(e.task.ID, 10),
		"$round", strconv.Itoa(e.task.Round),
	).Replace(pattern)
}
