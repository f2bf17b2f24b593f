package fetch

import (
	"context"
	"fmt"
	"os"
)

// Again fetches a program again whose files a round has changed.
func (f *Fetcher) Again(ctx context.Context, program, source string) (Program, error) {
	j, err := f.job(program, source)
	if err != nil {
		return Program{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, j.Timeout, timeoutError{j.Timeout})
	defer cancel()
	unlock, err := j.lock(ctx)
	if err != nil {
		return Program{}, failed(ctx, j.src, StepWait, err)
	}
	defer unlock()
	j.again = true
	return j.fetch(ctx)
}

// An Original tells whether rounds have changed the files of a fetched program, in its own directory.
type Original struct{ journal, files *tree }

// Original returns the Original of a program, as it is now. It is nil if the directory was made by hand. changed is
// the name of a file that was changed since the fetch, or "".
func (p Program) Original() (o *Original, changed string, err error) {
	record, err := journalOf(p.Dir)
	if record == nil || err != nil {
		return nil, "", err
	}
	o = &Original{}
	if o.journal, err = newTree(p.Dir, []string{journalName}, everywhere); err != nil {
		return nil, "", err
	}
	if o.files, err = newTree(p.Dir, append([]string{runScript}, record.Files...), everywhere); err != nil {
		return nil, "", err
	}
	changed, err = changedSinceFetch(p.Dir)
	return o, changed, err
}

// Changed returns the name of a file that a round has changed, or "". If the program was fetched again meanwhile,
// valid is false.
func (o *Original) Changed() (name string, valid bool) {
	if all, err := o.journal.changed(1); err != nil || len(all) > 0 {
		return "", false
	}
	all, err := o.files.check(fewOfCopy)
	if err != nil || len(all) == 0 {
		return "", err == nil
	}
	return o.files.names[all[0]], true
}

// intact returns the program of the original, as it was fetched. The caller must hold the original's lock.
func (j *job) intact(ctx context.Context, busy func() bool) (Program, error) {
	p, ok, err := j.ready()
	if err != nil {
		return p, err
	}
	if ok {
		changed, err := changedSinceFetch(j.dir)
		if changed == "" || err != nil {
			return p, err
		}
		if busy() {
			return p, errorInUse(j.program, changed)
		}
		j.Log.Warn("a round has changed its program: it is fetched again", "program", j.program, "file", changed)
		j.again = true
	}
	return j.fetch(ctx)
}

func errorInUse(program, changed string) error {
	return localError{fmt.Errorf("a round of another worker has changed ./%s/%s, and runs there", program, changed)}
}

// save returns how run.sh and other files of the program are now. run.sh is still in the staged tree.
func (j *job) save(files []string) ([]saved, error) {
	staged, err := openDirectory(j.staged(stagedTree))
	if err != nil {
		return nil, err
	}
	defer staged.Close()
	dir, err := openDirectory(j.dir)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	all := []saved{savedAt(int(staged.Fd()), runScript)}
	for _, name := range files {
		all = append(all, savedAt(int(dir.Fd()), name))
	}
	return all, nil
}

// changedSinceFetch returns the name of a fetched file that has changed, or "".
func changedSinceFetch(dir string) (string, error) {
	o, err := journalOf(dir)
	if o == nil || err != nil || len(o.Saved) != len(o.Files)+1 {
		return "", err
	}
	d, err := openDirectory(dir)
	if err != nil {
		return "", err
	}
	defer d.Close()
	for i, name := range append([]string{runScript}, o.Files...) {
		if savedAt(int(d.Fd()), name) != o.Saved[i] {
			return name, nil
		}
	}
	return "", nil
}

// journalOf returns the journal of a complete program, or nil if the directory was made by hand.
func journalOf(dir string) (*journal, error) {
	if !hasJournal(dir) {
		return nil, nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return journalIn(root)
}

// uninstall removes the files of a program that is fetched again.
func (j *job) uninstall() error {
	if !j.again {
		return nil
	}
	o, err := journalOf(j.dir)
	if err != nil || o == nil {
		return err
	}
	return o.undo(j.dir, j.Outputs)
}
