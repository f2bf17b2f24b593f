package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"sync"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/internal/results"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
)

// A resultsFile is the file of --results. With --resume, it keeps its rows, and a new file replaces it when all new
// rows are written, because these may have more columns. A nil resultsFile has no file.
type resultsFile struct {
	path   string
	file   *os.File
	resume bool
	before int64 // number of its rows

	mu  sync.Mutex
	ids map[int64]bool // the tasks that get a row
}

// openResults opens the file, so that the call ends before its first command if it cannot be written.
func openResults(path string, resume bool) (*resultsFile, error) {
	f := &resultsFile{path: path, resume: resume, ids: map[int64]bool{}}
	var err error
	f.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, cli.Usagef("--results: %v", err)
	}
	_, err = hold(f.file, resume)
	if err == nil && resume {
		err = f.read()
	}
	if err != nil {
		f.close()
		return nil, cli.Usagef("--results %s: %v", path, err)
	}
	return f, nil
}

// read counts the rows, and makes sure that another file can replace the file.
func (f *resultsFile) read() (err error) {
	f.path, err = filepath.EvalSymlinks(f.path)
	if err != nil {
		return err
	}
	beside, err := f.beside()
	if err != nil {
		return err
	}
	err = errors.Join(beside.Close(), os.Remove(beside.Name()))
	if err == nil {
		f.before, err = results.Count(f.file)
	}
	return err
}

func (f *resultsFile) beside() (*os.File, error) {
	return os.CreateTemp(filepath.Dir(f.path), "."+filepath.Base(f.path)+".*")
}

// add says that a task gets a row.
func (f *resultsFile) add(id int64) {
	if f != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.ids[id] = true
	}
}

// only returns the tasks of a Source that get a row.
func (f *resultsFile) only(all results.Source) results.Source {
	return func(change func(*manager.Query)) iter.Seq2[*manager.Task, error] {
		return func(yield func(*manager.Task, error) bool) {
			for t, err := range all(change) {
				if (err != nil || f.ids[t.ID]) && !yield(t, err) {
					return
				}
			}
		}
	}
}

// write writes the rows, and returns how many.
func (f *resultsFile) write(all results.Source) (n int, err error) {
	if !f.resume {
		_ = f.file.Truncate(0) // a pipe has no size
		done, err := results.CSV(f.only(all), f.file, results.Options{Fields: results.FromAuto})
		return done.Rows, errors.Join(err, f.file.Close())
	}
	out, err := f.beside()
	if err != nil {
		return 0, err
	}
	defer os.Remove(out.Name()) // unless it was renamed
	defer out.Close()
	info, err := f.file.Stat()
	if err != nil {
		return 0, err
	}
	_, err = f.file.Seek(0, io.SeekStart)
	if err != nil {
		return 0, err
	}
	done, err := results.CSV(f.only(all), out, results.Options{Fields: results.FromAuto, Before: f.file})
	if err == nil {
		err = errors.Join(out.Chmod(info.Mode().Perm()), out.Sync())
	}
	if err == nil {
		err = os.Rename(out.Name(), f.path)
	}
	return done.Rows, err
}

func (f *resultsFile) close() {
	if f != nil {
		_ = f.file.Close()
	}
}

// writeResults writes the file of --results.
func (c *campaign) writeResults(ctx context.Context) error {
	if c.rows == nil || c.rows.resume && len(c.rows.ids) == 0 {
		return nil
	}
	all := results.From(ctx, c.m.Manager, manager.Query{Group: c.base.Group, Order: manager.ByID})
	n, err := c.rows.write(all)
	if err != nil {
		return fmt.Errorf("write --results %s: %w", c.results, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.say("wrote %s to %s", format.Counted(n, "row"), c.results)
	if c.rows.before < c.skipped {
		c.a.Say("%s has fewer rows than commands that had succeeded: an earlier call ended before it wrote its rows",
			c.results)
	}
	if c.shortened > 0 {
		c.a.Say("the parameters of %s are longer than %d bytes: %s lacks some of their values, except in the column input",
			format.Counted(int(c.shortened), "command"), task.MaxMeta, c.results)
	}
	return nil
}
