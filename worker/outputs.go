package worker

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tdf-framework/tdf/internal/broker"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/worker/record"
	"github.com/tdf-framework/tdf/internal/worker/safepath"
)

// openRecord opens the two output files of the round. For each key of the configuration that names a file, it makes
// that file, and sets e.number, the number in the names. Otherwise the round uses a file of its slot.
func (e *execution) openRecord(private bool) (*record.Record, error) {
	slot := e.s.outputSlot(e.slot)
	round := e.roundRef()
	if e.s.inProcess() && !e.s.cfg.KeepsOutput() && !e.s.cfg.KeepsError() {
		return record.NewInMemory(slot, round, private), nil
	}
	f := e.recordFiles()
	f.Private, f.Slot = private, slot
	places, patterns := [2]*record.Place{&f.Stdout, &f.Stderr}, e.patterns()
	for i, kept := range [2]bool{e.s.cfg.KeepsOutput(), e.s.cfg.KeepsError()} {
		if !kept {
			continue
		}
		dir, err := e.openOutputDir(patterns[i])
		if err != nil {
			return nil, fmt.Errorf("the directory for %s: %w", [2]string{
				"stdout ([worker] task_output_filename)",
				"stderr ([worker] task_error_filename)",
			}[i], err)
		}
		defer dir.Close()
		places[i].Dir = dir
	}
	r, n, err := record.Open(f)
	if err != nil || n == 0 { // without a number, no file has a name
		return r, err
	}
	e.number.Store(int64(n))
	return r, nil
}

func (e *execution) roundRef() record.RoundRef {
	return record.RoundRef{Program: e.task.Program, Task: e.task.ID, Round: e.task.Round}
}

// patterns returns the configured names of the files for stdout and stderr.
func (e *execution) patterns() [2]string {
	return [2]string{e.s.cfg.TaskOutputFilename, e.s.cfg.TaskErrorFilename}
}

// recordFiles returns the names of the round's files, without their directories.
func (e *execution) recordFiles() record.Files {
	return record.Files{
		Stdout: record.Place{Shared: isShared(e.s.cfg.TaskOutputFilename)},
		Stderr: record.Place{Shared: isShared(e.s.cfg.TaskErrorFilename)},
		Names: func(n int) record.Names {
			names := e.outputs(int64(n))
			for i, path := range names {
				names[i] = filepath.Base(path)
			}
			return record.Names{Stdout: names[0], Stderr: names[1], Beside: names[2:]}
		},
		Round: e.roundRef(),
	}
}

// outputSlot returns the output files of a slot.
func (s *supervisor) outputSlot(slot int) *record.Slot {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slot - s.first - 1
	for len(s.outputs) <= i {
		s.outputs = append(s.outputs, record.NewSlot(s.rounds(), len(s.outputs)+1, s.lockRounds))
	}
	return s.outputs[i]
}

// openOutputDir opens the directory of an output file.
func (e *execution) openOutputDir(pattern string) (*os.File, error) {
	base, below := splitName(e.s.cfg.Directory, pattern)
	return safepath.Open(base, filepath.Dir(e.fill(below)), e.s.owner(max(e.slot, 1)) != nil)
}

// outputs returns the paths under which the n-th execution of the round keeps data: the files for stdout and stderr,
// and the place of scratch/.
func (e *execution) outputs(n int64) []string {
	output := e.s.cfg.TaskOutputFilename
	return []string{
		e.output(output, n), e.output(e.s.cfg.TaskErrorFilename, n),
		e.output(beside(output, ".scratch"), n),
	}
}

// output returns the path for a file name of the configuration. If rounds share that file, the executions of a round
// share it, too.
func (e *execution) output(pattern string, n int64) string {
	if isShared(pattern) {
		n = 1
	}
	return e.path(ofExecution(pattern, n))
}

// chooseNumber sets e.number, the number in the names of the round's files, if it is not set yet.
func (e *execution) chooseNumber() error {
	if e.number.Load() > 0 {
		return nil
	}
	return e.renumber()
}

// renumber sets e.number to the first number for which all names are free.
func (e *execution) renumber() error {
	f := e.recordFiles()
	for i, at := range [2]*record.Place{&f.Stdout, &f.Stderr} {
		dir, err := e.openOutputDir(e.patterns()[i])
		if err != nil {
			return err
		}
		defer dir.Close()
		at.Dir = dir
	}
	n, err := record.Free(f)
	if err != nil {
		return err
	}
	e.number.Store(int64(n))
	return nil
}

// scratchPath returns where scratch/ of the round is kept: beside the file for stdout.
func (e *execution) scratchPath() string {
	_ = e.chooseNumber() // keepScratch returns the error
	return e.outputs(max(e.number.Load(), 1))[2]
}

// keepScratch moves scratch/ of the round to the path that scratchPath returns.
func (e *execution) keepScratch(move func(to *os.File, name string) error) error {
	if err := e.chooseNumber(); err != nil {
		return err
	}
	dir, err := e.openOutputDir(e.s.cfg.TaskOutputFilename)
	if err != nil {
		return err
	}
	defer dir.Close()
	return move(dir, filepath.Base(e.scratchPath()))
}

// keepOutputs keeps the output files that have more than limit bytes. It logs where they are.
func (e *execution) keepOutputs(limit int64) {
	for _, stream := range e.record.Unkept(limit) {
		path, err := e.keepOutput(stream, func(dir *os.File, name string) error {
			return e.record.Keep(stream, dir, name)
		})
		if err != nil {
			e.log.Warn("output that Redis does not hold could not be kept", "error", err)
			continue
		}
		e.log.Info("kept output that Redis does not hold", "file", path)
	}
}

// renumberings bounds how often keepOutput chooses another number.
const renumberings = 3

// keepOutput moves the file for a stream to the path that the configuration names. It returns the path. If another
// process has taken the name in the meantime, the round gets another number.
func (e *execution) keepOutput(stream int, move func(to *os.File, name string) error) (path string, err error) {
	if err := e.chooseNumber(); err != nil {
		return "", err
	}
	dir, err := e.openOutputDir(e.patterns()[stream])
	if err != nil {
		return "", err
	}
	defer dir.Close()
	for tries := 0; ; tries++ {
		path = e.outputs(e.number.Load())[stream]
		err = move(dir, filepath.Base(path))
		if !errors.Is(err, fs.ErrExist) || tries == renumberings {
			return path, err
		}
		if err = e.renumber(); err != nil {
			return "", err
		}
	}
}

// settleOutput ends the use of the round's output files. It keeps them if Redis has not accepted the round's output,
// unless they are cut because the disk is full: then they would keep it full.
func (e *execution) settleOutput() {
	if e.record == nil {
		return
	}
	if !e.stored && !errors.Is(e.cause, errDiskFull) {
		e.keepOutputs(0)
	}
	e.record.Release()
}

// salvageOutputs keeps the output that a killed worker of the given name has left in the directory at path, and has not
// delivered.
func (w *Worker) salvageOutputs(name, path string) {
	log := w.log.With("of", name)
	err := record.Salvage(path, func(left *record.Leftover) {
		log := log.With("task", left.Task, "round", left.Round)
		d := task.Defaults(left.Program, "rsync:/run.sh", "")
		if d.Validate() != nil || left.Task <= 0 || left.Round < 0 {
			log.Warn("output of a killed worker could not be kept", "program", broker.Short(left.Program), "error",
				"a program has changed the file that says whose output it is")
			return
		}
		e := &execution{
			s: &supervisor{Worker: w}, writer: name, log: log,
			task: &task.Task{ID: left.Task, Properties: d},
		}
		e.task.Round = left.Round
		e.number.Store(int64(left.Number))
		for _, stream := range left.Streams() {
			path, err := e.keepOutput(stream, func(dir *os.File, name string) error {
				return left.Keep(stream, dir, name)
			})
			if err != nil {
				log.Warn("output of a killed worker could not be kept", "error", err)
				continue
			}
			log.Info("kept output of a killed worker", "file", path)
		}
	}, func(file string, why error) {
		log.Warn("output of a killed worker could not be kept", "file", file, "error", why)
	})
	if err != nil {
		log.Warn("output of a killed worker could not be kept", "error", err)
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

// worker returns the name of the worker in the names of the round's files.
func (e *execution) worker() string { return cmp.Or(e.writer, e.s.name) }

// fill replaces the placeholders in a file name of the configuration.
func (e *execution) fill(pattern string) string {
	return strings.NewReplacer(
		"$program", e.task.Program,
		"$worker", e.worker(),
		"$taskId", strconv.FormatInt(e.task.ID, 10),
		"$round", strconv.Itoa(e.task.Round),
	).Replace(pattern)
}
