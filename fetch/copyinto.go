package fetch

import (
	"context"
	"path/filepath"
)

// CopyInto copies a program into an empty directory, for one round. It copies from dir, which is the directory of the
// program or a copy of it, and leaves out files that rounds have written there. Of the options, it uses
// MaxBytes. The errors are those of [Fetcher.Fetch].
func (f *Fetcher) CopyInto(ctx context.Context, program, source, dir, to string, with CopyOptions) (*Copy, error) {
	j, err := f.job(program, source)
	if err != nil {
		return nil, err
	}
	j.original = filepath.Base(dir)
	c := &Copy{Dir: to, job: j, with: with}
	return c, failed(ctx, j.src, StepCopy, c.copyInto(ctx, dir))
}

func (c *Copy) copyInto(ctx context.Context, dir string) error {
	names, err := c.names(dir)
	if err != nil {
		return err
	}
	c.origin, err = newTree(dir, names, everywhere)
	if err != nil {
		return err
	}
	names, err = c.copyTree(ctx, c.Dir, names)
	if err != nil {
		return err
	}
	c.files, err = newTree(c.Dir, names, everywhere)
	return err
}

// Unchanged returns the files of the copy that are as they were copied.
func (c *Copy) Unchanged() (map[string]bool, error) {
	changed, err := c.files.changed(len(c.files.names))
	if err != nil {
		return nil, err
	}
	same := make(map[string]bool, len(c.files.names))
	for _, name := range c.files.names {
		same[name] = true
	}
	for _, i := range changed {
		delete(same, c.files.names[i])
	}
	return same, nil
}
