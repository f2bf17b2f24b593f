package worker

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/tdf-framework/tdf/worker/record"
	"github.com/tdf-framework/tdf/worker/retention"
	"github.com/tdf-framework/tdf/worker/safepath"
)

// openRecord makes the two output files of the round. It also sets e.number, the number in their names.
func (e *execution) openRecord(private bool) (*record.Record, error) {
	output, failure := e.s.cfg.TaskOutputFilename, e.s.cfg.TaskErrorFilename
	out, err := e.openOutputDir(output)
	if err != nil {
		return nil, fmt.Errorf("the directory for stdout ([worker] task_output_filename): %w", err)
	}
	defer out.Close()
	errs, err := e.openOutputDir(failure)
	if err != nil {
		return nil, fmt.Errorf("the directory for stderr ([worker] task_error_filename): %w", err)
	}
	defer errs.Close()
	r, n, err := record.Open(record.Files{
		Stdout: record.Place{Dir: out, Shared: retention.IsShared(output)},
		Stderr: record.Place{Dir: errs, Shared: retention.IsShared(failure)},
		Names: func(n int) record.Names {
			names := e.outputs(int64(n))
			for i, path := range names {
				names[i] = filepath.Base(path)
			}
			return record.Names{Stdout: names[0], Stderr: names[1], Beside: names[2:]}
		},
		Private: private,
	})
	if err == nil {
		e.number.Store(int64(n))
	}
	return r, err
}

// openOutputDir opens the directory of an output file.
func (e *execution) openOutputDir(pattern string) (*os.File, error) {
	base, below := retention.Split(e.s.cfg.Directory, pattern)
	return safepath.Open(base, filepath.Dir(e.fill(below)), e.s.owner(e.slot) != nil)
}

// outputs returns the paths under which the n-th execution of the round keeps data: the files for stdout and stderr,
// and the places of files/ and scratch/.
func (e *execution) outputs(n int64) []string {
	output := e.s.cfg.TaskOutputFilename
	return []string{
		e.output(output, n), e.output(e.s.cfg.TaskErrorFilename, n),
		e.output(retention.Beside(output, ".files"), n), e.output(retention.Beside(output, ".scratch"), n),
	}
}

// output returns the path for a file name of the configuration. If rounds share that file, the executions of a round
// share it, too.
func (e *execution) output(pattern string, n int64) string {
	if retention.IsShared(pattern) {
		n = 1
	}
	return e.path(retention.Execution(pattern, n))
}

// kept returns where files/ or scratch/ of the round is kept: beside the file for stdout.
func (e *execution) kept(what string) string {
	return e.output(retention.Beside(e.s.cfg.TaskOutputFilename, "."+what), e.number.Load())
}

// keep moves files/ or scratch/ of the round to the path that kept returns.
func (e *execution) keep(what string, move func(to *os.File, name string) error) error {
	dir, err := e.openOutputDir(e.s.cfg.TaskOutputFilename)
	if err != nil {
		return err
	}
	defer dir.Close()
	return move(dir, filepath.Base(e.kept(what)))
}
