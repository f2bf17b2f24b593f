package process

import (
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A family is what is below this process: whose child each one is. There is one for all Hosts, since
// they share the children.
type family struct {
	// forks is held for reading from a fork until the child is known, so that whoever holds it for
	// writing meets no child of which it is not said whose it is.
	forks sync.RWMutex

	scanning sync.Mutex // one scan at a time, which serves all who asked before it began

	mu       sync.Mutex // guards what follows
	begun    uint64     // scans
	finished uint64     // the last scan that did
	last     view       // what it saw
	programs map[key]*Process
	marks    map[string]*Process
	groups   map[string]*Process // by cgroup
	homes    map[string]bool     // the cgroups that Hosts have theirs in
	seen     map[key]*owner
	hosts    int    // that are not closed
	before   int    // whether orphans came to this process before the first of them
	sole     int    // Hosts that have this process for themselves
	holds    int    // others start children now
	held     uint64 // times that holds went up
}

// A view is what a scan saw.
type view struct {
	living map[*Process][]proc
	// ended has the programs of which orphans ended while the view was taken. What such a one began at
	// the last, after the names were listed, is missing from living; the next view has it.
	ended map[*Process]bool
}

// An owner is whom a process belongs to: a program; or one of several, nobody knows which; or, with
// neither, somebody who is none of our business.
type owner struct {
	program  *Process
	suspects map[*Process]struct{}
}

// endedOf notes that an orphan has ended that may have been of any program that o names.
func (v view) endedOf(o *owner) {
	if o == nil {
		return
	}
	if o.program != nil {
		v.ended[o.program] = true
	}
	for p := range o.suspects {
		v.ended[p] = true
	}
}

// sure returns the one program that it can be, or nil.
func (o *owner) sure() *Process {
	if len(o.suspects) == 1 {
		for p := range o.suspects {
			return p
		}
	}
	return o.program
}

var foreign = &owner{}

var ours = &family{
	programs: map[key]*Process{}, marks: map[string]*Process{}, groups: map[string]*Process{}, homes: map[string]bool{}, seen: map[key]*owner{},
}

// join makes a program known; f.forks is held.
func (f *family) join(p *Process) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.programs[p.key] = p
	if p.cmd.Mark != "" {
		f.marks[p.cmd.Mark] = p
	}
	if p.group != nil {
		f.groups[p.group.path] = p
	}
}

// leave forgets a program of which nothing is left; false if an orphan is, whom nobody else can
// have begotten. It waits for the program first, which has ended: it must not be taken for an orphan.
func (f *family) leave(p *Process) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, o := range f.seen {
		if o.suspects != nil && o.sure() == p {
			return false
		}
	}
	p.reap()
	for _, o := range f.seen {
		delete(o.suspects, p)
	}
	delete(f.programs, p.key)
	if f.marks[p.cmd.Mark] == p {
		delete(f.marks, p.cmd.Mark)
	}
	if p.group != nil {
		delete(f.groups, p.group.path)
	}
	return true
}

// giveUp lets go of a process that may not be ended.
func (f *family) giveUp(k key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen[k] = foreign
}

// scan returns who is there, as of a moment after it was called, and reaps orphans that have ended.
func (f *family) scan() view {
	f.mu.Lock()
	need := f.begun + 1
	f.mu.Unlock()
	f.scanning.Lock()
	defer f.scanning.Unlock()
	f.mu.Lock()
	if f.finished >= need {
		defer f.mu.Unlock()
		return f.last
	}
	f.begun++
	number, holds, held := f.begun, f.holds, f.held
	f.mu.Unlock()
	all := mustSnapshot()
	f.forks.Lock()
	defer f.forks.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	quiet := holds == 0 && f.held == held
	f.last, f.finished = f.tell(all, quiet), number
	return f.last
}

// mustSnapshot tries until it can: who cannot be seen now, for want of a descriptor, is there all
// the same.
func mustSnapshot() []proc {
	for {
		all, err := snapshot()
		if err == nil {
			return all
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// tell says whose each process below this one is. quiet says that no others may have started one.
func (f *family) tell(all []proc, quiet bool) view {
	below := map[int][]proc{}
	for _, pr := range all {
		below[pr.ppid] = append(below[pr.ppid], pr)
	}
	seen, who := map[key]*owner{}, view{map[*Process][]proc{}, map[*Process]bool{}}
	var walk func(pr proc, o *owner)
	walk = func(pr proc, o *owner) {
		if f.seen[pr.key] == foreign {
			o = foreign
		}
		seen[pr.key] = o
		if p := o.sure(); p != nil && pr.alive() {
			who.living[p] = append(who.living[p], pr)
		}
		for _, child := range below[pr.pid] {
			walk(child, o)
		}
	}
	for _, child := range below[os.Getpid()] {
		o := f.ownerOf(child, quiet)
		if !child.alive() && f.reap(child, o, quiet) {
			who.endedOf(o)
			continue
		}
		if o != nil {
			walk(child, o)
		}
	}
	for _, pr := range all { // whoever ends meanwhile may cut off others
		if _, found := seen[pr.key]; !found && f.seen[pr.key] != nil && f.seen[pr.key] != foreign {
			walk(pr, f.seen[pr.key])
		}
	}
	f.seen = seen
	return who
}

// ownerOf says whose a child of this process is; nil if it cannot be said, and not be guessed either.
func (f *family) ownerOf(child proc, quiet bool) *owner {
	if p := f.programs[child.key]; p != nil {
		return &owner{program: p}
	}
	o := f.seen[child.key]
	if o != nil && o.suspects == nil {
		return o
	}
	if p := f.traced(child); p != nil {
		return &owner{program: p}
	}
	switch {
	case o != nil:
		return o
	case f.sole == 0:
		return nil
	case !quiet:
		return foreign
	}
	o = &owner{suspects: map[*Process]struct{}{}}
	for _, p := range f.programs {
		if p.host.cfg.Sole && p.born <= child.born {
			o.suspects[p] = struct{}{}
		}
	}
	if len(o.suspects) == 0 {
		return foreign
	}
	return o
}

// traced finds the program of an orphan that nobody has seen before.
func (f *family) traced(orphan proc) *Process {
	if len(f.groups) > 0 {
		if path, err := cgroupOf(strconv.Itoa(orphan.pid)); err == nil && f.groups[path] != nil {
			return f.groups[path]
		}
	}
	for _, variable := range environ(orphan.pid) {
		if p := f.marks[string(variable)]; p != nil {
			return p
		}
	}
	for _, p := range f.programs {
		if p.pid == orphan.sid && p.group == nil { // it is not waited for before it leaves, so its number is its own
			return p
		}
	}
	return nil
}

// reap waits for a child that has ended, if it is an orphan beyond doubt: one of others' own they
// wait for themselves.
func (f *family) reap(child proc, o *owner, quiet bool) bool {
	if f.programs[child.key] != nil {
		return false // its own supervisor does
	}
	belongs := o != nil && o != foreign
	// Who was started here leads a session of its own, or is in ours.
	adopted := child.sid != child.pid && child.sid != ownSession() || f.housed(child.pid)
	if !belongs && !adopted && (f.sole == 0 || !quiet) {
		return false
	}
	var ru syscall.Rusage
	pid, err := syscall.Wait4(child.pid, nil, syscall.WNOHANG, &ru)
	if pid != child.pid || err != nil {
		return false
	}
	if belongs && o.sure() != nil {
		o.sure().charge(&ru)
	}
	return true
}

// housed says whether a process is, or was, in some program's cgroup.
func (f *family) housed(pid int) bool {
	if len(f.homes) == 0 {
		return false
	}
	path, err := cgroupOf(strconv.Itoa(pid))
	return err == nil && f.homes[filepath.Dir(path)]
}

// house makes a Host's cgroup known, or with false forgets it.
func (f *family) house(path string, is bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.homes[path] = is; !is {
		delete(f.homes, path)
	}
}

// adopt has orphans come to this process, until as many calls of release as of adopt.
func (f *family) adopt() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hosts++; f.hosts > 1 {
		return nil
	}
	var before int32
	if err := unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&before)), 0, 0, 0); err != nil {
		return os.NewSyscallError("prctl", err)
	}
	f.before = int(before)
	return os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
}

func (f *family) release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hosts--; f.hosts == 0 {
		_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, uintptr(f.before), 0, 0, 0)
	}
}

// hold lets others start children of this process. What is there before is not theirs, and what is
// there afterwards for the first time is.
func (f *family) hold() (release func()) {
	f.scan()
	f.mu.Lock()
	f.holds++
	f.held++
	f.mu.Unlock()
	return sync.OnceFunc(func() {
		f.scan()
		f.mu.Lock()
		f.holds--
		f.mu.Unlock()
	})
}

// claim makes the children that are there those of others: from now on, who is new is a program's.
func (f *family) claim() {
	release := f.hold()
	f.mu.Lock()
	f.sole++
	f.mu.Unlock()
	release()
}

func (f *family) disclaim() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sole--
	if f.sole == 0 {
		maps.DeleteFunc(f.seen, func(_ key, o *owner) bool { return o == foreign })
	}
}
