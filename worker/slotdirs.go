package worker

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/tdf-framework/tdf/fetch"
)

// sharedFile is a file with which a program asks that its rounds share its directory.
const sharedFile = ".tdfshared"

// maxCopies is for how many programs a slot remembers its copies.
const maxCopies = 100

// slotDirs decides in which directory each round runs, so that no two rounds use a directory at the same time: in a
// copy of the program's directory that belongs to the slot, or in the program's directory itself if this worker has
// one slot and no other worker uses the working directory (docs/programs.md, "The directory of a round").
type slotDirs struct {
	w *Worker

	mu       sync.Mutex
	numbers  *fetch.Numbers // nil until the first round
	alone    bool           // rounds run in the originals
	slots    map[int]*slotDir
	changing map[string]bool // programs whose rounds change their files
}

// A slotDir is the directories of one slot. Only the slot's round uses it, except for the number.
type slotDir struct {
	number    int // of its copies; 0 until it needs one
	copies    map[string]*fetch.Copy
	originals map[string]*fetch.Original
}

func newSlotDirs(w *Worker) *slotDirs {
	return &slotDirs{w: w, slots: map[int]*slotDir{}, changing: map[string]bool{}}
}

func (d *slotDirs) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.numbers != nil {
		d.numbers.Close()
	}
}

// open makes sure that there are numbers, and finds out whether this worker is alone.
func (d *slotDirs) open() (err error) {
	if d.numbers != nil && d.numbers.Valid() {
		return nil
	}
	if d.numbers != nil {
		d.numbers.Close()
		d.slots, d.alone = map[int]*slotDir{}, false
	}
	d.numbers, err = fetch.OpenNumbers(d.w.cfg.Directory)
	if err != nil || d.w.slots() != 1 {
		return err
	}
	d.alone, err = d.numbers.TakeOriginal()
	return err
}

// directory returns the directory for a round of a program. The program's directory is complete.
func (d *slotDirs) directory(ctx context.Context, r *Round, f *fetch.Fetcher, p fetch.Program) (string, error) {
	name := filepath.Base(p.Dir)
	r.execution.programDir.Store(&name)
	if asksToShare(p.Dir) {
		return p.Dir, nil
	}
	s, alone, err := d.slot(r)
	if err != nil {
		return "", Unfit(err)
	}
	if alone {
		changed, err := s.inPlace(r.execution.programName(), p)
		if changed == "" || err != nil {
			return p.Dir, err
		}
		d.warnOfChange(r, changed)
		if err := r.holdTimeout(ctx, d.w.cfg.FetchTimeout); err != nil {
			return "", err
		}
		if p, err = f.Again(ctx, r.Program, r.Source); err != nil {
			return "", err
		}
		r.ProgramSHA256 = p.SHA256
	}
	return d.copy(ctx, r, s, f, p)
}

// slot returns the directories of a round's slot. alone says that the round runs in the original.
func (d *slotDirs) slot(r *Round) (s *slotDir, alone bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.open(); err != nil {
		return nil, false, err
	}
	if s = d.slots[r.Slot]; s == nil {
		s = &slotDir{copies: map[string]*fetch.Copy{}, originals: map[string]*fetch.Original{}}
		d.slots[r.Slot] = s
	}
	if d.alone && d.numbers.LeaveOriginal() {
		d.alone = false
	}
	alone = d.alone && !d.changing[r.execution.programName()]
	if !alone && s.number == 0 {
		s.number, err = d.numbers.Take(r.Slot)
	}
	return s, alone, err
}

// inPlace returns the name of a fetched file of the original that a round has changed, or "".
func (s *slotDir) inPlace(program string, p fetch.Program) (changed string, err error) {
	if o := s.originals[program]; o != nil {
		if changed, valid := o.Changed(); valid {
			return changed, nil
		}
	}
	o, changed, err := p.Original()
	if len(s.originals) >= maxCopies {
		clear(s.originals)
	}
	if o != nil && changed == "" {
		s.originals[program] = o
	}
	return changed, err
}

// copy returns the slot's copy of a program. It makes the copy if there is none, and renews it if a round has changed
// it.
func (d *slotDirs) copy(ctx context.Context, r *Round, s *slotDir, f *fetch.Fetcher, p fetch.Program) (string, error) {
	if c := s.copies[r.execution.programName()]; c != nil {
		changed, fresh, err := c.Renew(ctx)
		if changed != "" {
			d.warnOfChange(r, changed)
		}
		if fresh || err != nil {
			return c.Dir, err
		}
	}
	if err := r.holdTimeout(ctx, d.w.cfg.FetchTimeout); err != nil {
		return "", err
	}
	c, err := f.Copy(ctx, r.Program, r.Source, d.options(s))
	if err != nil {
		return "", err
	}
	if len(s.copies) >= maxCopies {
		clear(s.copies)
	}
	s.copies[r.execution.programName()] = c
	return c.Dir, nil
}

func (d *slotDirs) options(s *slotDir) fetch.CopyOptions {
	return fetch.CopyOptions{Number: s.number, MaxBytes: d.w.cfg.MaxCopyBytes, Busy: d.numbers.OriginalUsed}
}

// outputsBelow returns the directory below a program's directory in which the worker keeps outputs, or "".
func (w *Worker) outputsBelow() string {
	_, below := splitName(w.cfg.Directory, w.cfg.TaskOutputFilename)
	dir, ok := strings.CutPrefix(filepath.ToSlash(below), "$program/")
	if !ok || strings.Contains(path.Dir(dir), "$") {
		return ""
	}
	return path.Dir(dir)
}

// asksToShare reports whether the program asks that its rounds share its directory.
func asksToShare(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, sharedFile))
	return err == nil
}

func (d *slotDirs) warnOfChange(r *Round, file string) {
	d.mu.Lock()
	known := d.changing[r.execution.programName()]
	d.changing[r.execution.programName()] = true
	d.mu.Unlock()
	if !known {
		r.Log.Warn("a round has changed a file of its program: the next round gets the original file again", "file",
			file)
	}
}

// copyOf returns the name of a slot's copy of a program, or "".
func (d *slotDirs) copyOf(slot int, program string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.slots[slot]
	if s == nil || s.number == 0 {
		return ""
	}
	return program + "~" + strconv.Itoa(s.number)
}
