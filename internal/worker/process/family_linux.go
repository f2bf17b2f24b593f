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

// A family records all processes below this process, and the owner of each. All Hosts use the same family, since they
// share the children of this process.
type family struct {
	// A goroutine that starts a child holds the lock forks for reading until the child is registered. So a goroutine
	// that holds the lock for writing sees only children with a registered owner.
	forks sync.RWMutex

	// held by a scan, so that only one scan runs at a time; calls that were made before the scan began share its result
	scanning sync.Mutex

	mu         sync.Mutex // guards the fields below
	begun      uint64     // how many scans have begun
	finished   uint64     // the number of the last scan that has finished
	last       view       // the result of that scan
	programs   map[key]*Process
	pids       map[int]bool // PIDs of programs
	marks      map[string]*Process
	groups     map[string]*Process // the keys are cgroups
	cgroupDirs map[string]bool     // directories of Hosts' cgroups
	seen       map[key]*owner
	hosts      int    // number of Hosts that are not closed
	before     int    // whether this process was a subreaper before the first Host
	sole       int    // number of Hosts with Sole
	holds      int    // number of calls of hold that are not released
	held       uint64 // number of calls of hold so far
}

// A view is the result of a scan.
type view struct {
	living map[*Process][]proc
	// ended contains the programs whose orphans ended during the scan. An orphan that ends may have started processes
	// after the scan had listed all processes. These processes are missing in living. The next view contains them.
	ended map[*Process]bool
}

// An owner says to which program a process belongs. If this program is known, it is in the field program. If it is not
// known, the process belongs to one of the programs in suspects. If both fields are empty, the process belongs to no
// program.
type owner struct {
	program  *Process
	suspects map[*Process]struct{}
}

// endedOf records that an orphan has ended. The orphan may have belonged to any program in o.
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

// onlyCandidate returns the program if there is only one candidate, and nil otherwise.
func (o *owner) onlyCandidate() *Process {
	if len(o.suspects) == 1 {
		for p := range o.suspects {
			return p
		}
	}
	return o.program
}

var foreign = &owner{}

var ours = &family{
	programs: map[key]*Process{}, pids: map[int]bool{}, marks: map[string]*Process{}, groups: map[string]*Process{},
	cgroupDirs: map[string]bool{}, seen: map[key]*owner{},
}

// join registers a program. The caller holds f.forks.
func (f *family) join(p *Process) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.programs[p.key], f.pids[p.pid] = p, true
	if p.cmd.Mark != "" {
		f.marks[p.cmd.Mark] = p
	}
	if p.group != nil {
		f.groups[p.group.path] = p
	}
}

// leave removes a program that has no processes left. It reaps the program first, so that no scan mistakes the program
// for an orphan. If there is an orphan that only this program can have started, leave returns false and removes
// nothing.
func (f *family) leave(p *Process) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, o := range f.seen {
		if o.suspects != nil && o.onlyCandidate() == p {
			return false
		}
	}
	p.reap()
	for _, o := range f.seen {
		delete(o.suspects, p)
	}
	delete(f.programs, p.key)
	delete(f.pids, p.pid)
	if f.marks[p.cmd.Mark] == p {
		delete(f.marks, p.cmd.Mark)
	}
	if p.group != nil {
		delete(f.groups, p.group.path)
	}
	return true
}

// orphanEnded reports whether an orphan has ended: a child of this process that is no program. It does not scan, so it
// may miss an orphan.
func (f *family) orphanEnded() bool {
	if pid := anyEnded(); pid == 0 || f.isProgram(pid) {
		return false
	}
	f.forks.Lock() // a short program may end before it is registered
	defer f.forks.Unlock()
	pid := anyEnded()
	return pid != 0 && !f.isProgram(pid)
}

func (f *family) isProgram(pid int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pids[pid]
}

// ignore removes a process that this user may not end. From then on, the process belongs to no program.
func (f *family) ignore(k key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen[k] = foreign
}

// scan lists the processes below this process, and reaps orphans that have ended. The list is never older than the
// call.
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
	f.last, f.finished = f.assignOwners(all, quiet), number
	return f.last
}

// mustSnapshot repeats the snapshot until it succeeds. A snapshot fails, for example, while this process has no free
// descriptor.
func mustSnapshot() []proc {
	for {
		all, err := snapshot()
		if err == nil {
			return all
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// assignOwners returns the owner of each process below this one. If no other code of this process can have started one
// of these processes, quiet is true.
func (f *family) assignOwners(all []proc, quiet bool) view {
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
		if p := o.onlyCandidate(); p != nil && pr.alive() {
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
	for _, pr := range all { // a process that ended during the scan may have left orphans
		if _, found := seen[pr.key]; !found && f.seen[pr.key] != nil && f.seen[pr.key] != foreign {
			walk(pr, f.seen[pr.key])
		}
	}
	f.seen = seen
	return who
}

// ownerOf returns the owner of a child of this process, or nil if the owner is unknown.
func (f *family) ownerOf(child proc, quiet bool) *owner {
	if p := f.programs[child.key]; p != nil {
		return &owner{program: p}
	}
	o := f.seen[child.key]
	if o != nil && o.suspects == nil {
		return o
	}
	if p := f.traceOwner(child); p != nil {
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

// traceOwner returns the program of an orphan that is seen for the first time, or nil if the program is unknown.
func (f *family) traceOwner(orphan proc) *Process {
	if len(f.groups) > 0 {
		if path, err := cgroupOf(strconv.Itoa(orphan.pid)); err == nil && f.groups[path] != nil &&
			f.groups[path].born <= orphan.born {
			return f.groups[path]
		}
	}
	for _, variable := range environ(orphan.pid) {
		if p := f.marks[string(variable)]; p != nil {
			return p
		}
	}
	for _, p := range f.programs {
		// only family.leave reaps a program without a cgroup, so this PID still belongs to the program
		if p.pid == orphan.sid && p.group == nil {
			return p
		}
	}
	return nil
}

// reap reaps a child that has ended, if the child is certainly an orphan. Children that other code started are reaped
// by that code.
func (f *family) reap(child proc, o *owner, quiet bool) bool {
	if f.programs[child.key] != nil {
		return false // Process.supervise reaps the program
	}
	belongs := o != nil && o != foreign
	// A program leads a session of its own. A child that other code started is in the session of this process.
	correctParents := child.sid != child.pid && child.sid != ownSession() || f.inProgramCgroup(child.pid)
	if !belongs && !correctParents && (f.sole == 0 || !quiet) {
		return false
	}
	var ru syscall.Rusage
	pid, err := syscall.Wait4(child.pid, nil, syscall.WNOHANG, &ru)
	if pid != child.pid || err != nil {
		return false
	}
	if belongs && o.onlyCandidate() != nil {
		o.onlyCandidate().charge(&ru)
	}
	return true
}

// inProgramCgroup reports whether a process is, or was, in a program's cgroup.
func (f *family) inProgramCgroup(pid int) bool {
	if len(f.cgroupDirs) == 0 {
		return false
	}
	path, err := cgroupOf(strconv.Itoa(pid))
	return err == nil && f.cgroupDirs[filepath.Dir(path)]
}

// registerCgroup registers the directory of a Host's cgroups. If registered is false, it removes the directory again.
func (f *family) registerCgroup(path string, registered bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cgroupDirs[path] = registered
	if !registered {
		delete(f.cgroupDirs, path)
	}
}

// adopt makes this process a subreaper. The process stays a subreaper until release has been called as often as adopt.
func (f *family) adopt() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hosts++
	if f.hosts > 1 {
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
	f.hosts--
	if f.hosts == 0 {
		_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, uintptr(f.before), 0, 0, 0)
	}
}

// hold lets other code start children of this process until release is called. Children that appear between the two
// calls count as children of other code.
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

// claim registers the present children as children of other code. From then on, a new child belongs to a program,
// except between a call of hold and its release.
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
