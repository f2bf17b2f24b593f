package process

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// nameless is a script that leaves a process behind, and prints the PID of that process. Nothing connects the process
// with its program.
const nameless = `env -i setsid sh -c '(setsid sh -c "echo \$\$; exec sleep 1000" &)' &
while ! [ -s out ]; do sleep 0.01; done; wait`

// leaveOrphan runs nameless until the script has ended. No scan runs before that, because a scan would record the owner
// of the process.
func (s *site) leaveOrphan() *run {
	s.t.Helper()
	ours.scanning.Lock()
	defer ours.scanning.Unlock()
	r := s.sh(nameless)
	<-r.exited
	return r
}

func TestUnknownOrphanIsEndedWithSole(t *testing.T) {
	s := newSite(t, false, Config{Sole: true})
	r := s.leaveOrphan()
	ended := r.wait()
	pid := pid(t, r.printed())
	expect.True(t, gone(pid), "process", pid, "remains; got", ended)
	expect.Equal(t, ended.Exit, "0", "process", pid)
	expect.NotEqual(t, ended.Lingered, 0, "process", pid)
}

// An orphan of unknown owner may belong to any program that ran when the orphan began. It is ended when the last of
// these programs ends.
func TestUnknownOrphanEndsWithTheLastProgram(t *testing.T) {
	s := newSite(t, false, Config{Sole: true})
	long := s.sh("echo begun; exec sleep 1000")
	long.awaitLines(1)
	short := s.leaveOrphan()
	short.wait()
	orphan := pid(t, short.printed())
	expect.True(t, !gone(orphan), "the orphan was ended with the first program, but it may belong to the other program")
	young := s.sh("true") // this program began later than the orphan
	young.wait()
	expect.True(t, !gone(orphan), "the orphan was ended with a program that began later than the orphan")
	long.end()
	expect.True(t, gone(orphan), "the orphan remains")
}

// Without Sole, other code may start children, so unknown processes are not ended.
func TestUnknownOrphanRunsOnWithoutSole(t *testing.T) {
	s := newSite(t, false, Config{})
	r := s.leaveOrphan()
	r.wait()
	orphan := pid(t, r.printed())
	expect.MustTrue(t, !gone(orphan), "the orphan was ended")
	reapByHand(t, orphan)
}

func reapByHand(t *testing.T, pid int) {
	t.Helper()
	must(t, syscall.Kill(pid, syscall.SIGKILL))
	expect.Result(syscall.Wait4(pid, nil, 0, nil)).OK(t)
}

func TestChildrenOfOthersAreNeverTouched(t *testing.T) {
	for name, sole := range map[string]bool{"not sole": false, "held": true} {
		for _, cgroups := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, cgroups %t", name, cgroups), func(t *testing.T) {
				s := newSite(t, cgroups, Config{Sole: sole})
				release := s.host.Hold()
				living, out := foreignChild(t, "echo $$; exec sleep 1000")
				expect.Result(out.ReadString('\n')).OK(t)
				dead, out := foreignChild(t, "exit 6")
				expect.Result(out.ReadString('\n')).Fails(t, "", "it printed something")
				until(t, "it has ended", func() bool { pr, _ := look(dead.Process.Pid); return !pr.alive() })
				for range 3 {
					s.sh("(setsid sleep 1000 &)").wait()
					ours.scan()
				}
				expect.Fails(t, dead.Wait(), "")
				expect.Equal(t, dead.ProcessState.ExitCode(), 6)
				must(t, living.Process.Signal(syscall.Signal(0)), "the living child")
				_ = living.Process.Kill()
				_ = living.Wait()
				expect.Equal(t, living.ProcessState.Sys().(syscall.WaitStatus).Signal(), syscall.SIGKILL, "the living child ended by")
				release()
			})
		}
	}
}

// The Host does not end processes that other code starts between Hold and release. It only reaps them when they have
// ended.
func TestOrphansOfOthersRunOnAfterHold(t *testing.T) {
	s := newSite(t, false, Config{Sole: true})
	release := s.host.Hold()
	fetch, out := foreignChild(t, "sleep 1000 >/dev/null & echo $!")
	line := expect.Result(out.ReadString('\n')).Value(t)
	must(t, fetch.Wait())
	release()
	left := pid(t, line)
	s.sh("true").wait()
	expect.True(t, !gone(left), "the process of other code was ended with a program")
	must(t, syscall.Kill(left, syscall.SIGKILL))
	until(t, "it is waited for", func() bool { ours.scan(); return gone(left) })
}

// Orphans that end while their program runs are reaped, and count for the resource usage of that program.
func TestOrphansAreReapedWhileTheProgramRuns(t *testing.T) {
	bothWays(t, func(t *testing.T, s *site) {
		r := s.sh(`(sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo $$' &); exec sleep 1000`)
		orphan := pid(t, r.awaitLines(1)[0])
		until(t, "the orphan is waited for", func() bool { return gone(orphan) })
		ended := r.end()
		expect.True(t, ended.CPU >= 20e6, "the orphan's usage is not charged", ended)
	})
}

// If the PID of an ended process now belongs to another process, the other process gets no signal.
func TestReusedPIDIsNotSignalled(t *testing.T) {
	cmd, _ := foreignChild(t, "exec sleep 1000")
	pr := expect.Result(look(cmd.Process.Pid)).Value(t)
	pr.born--
	err := pr.signal(syscall.SIGKILL)
	expect.True(t, err == os.ErrProcessDone, "got", err)
	pr.born++
	must(t, pr.signal(syscall.SIGTERM))
	expect.Fails(t, cmd.Wait(), "terminated")
}

func TestParseStat(t *testing.T) {
	const rest = " S 5 6 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 3 0 9876 1 2"
	want := proc{key: key{4, 9876}, ppid: 5, sid: 7, state: 'S', threads: 3}
	for _, name := range []string{"sh", "a b", ") S 1 1 (", "x) Z 9 9 9"} {
		expect.Result(parseStat(4, []byte("4 ("+name+")"+rest))).Is(t, want, name)
	}
	for text, execing := range map[string]bool{
		rest + strings.Repeat(" 1", 26) + " 0 0\n":                                           true,
		rest + strings.Repeat(" 1", 26) + " 140724305346537 0\n":                             false,
		strings.Replace(rest, "4194304", "4194308", 1) + strings.Repeat(" 1", 26) + " 0 0\n": false, // the process is about to end
	} {
		expect.Equal(t, expect.Result(parseStat(4, []byte("4 (sh)"+text))).Value(t).execing, execing, text)
	}
	for _, text := range []string{"", "4 (sh", "4 (sh) S 1", "4 (sh)" + strings.Replace(rest, "9876", "x", 1)} {
		expect.Result(parseStat(4, []byte(text))).Fails(t, "", text)
	}
}

func TestSweep(t *testing.T) {
	mark := t.TempDir()
	bystander, _ := foreignChild(t, "exec sleep 1000")
	defer bystander.Wait()
	defer bystander.Process.Kill()
	t.Setenv("TDF_DIR", mark+"/1/0") // now this process looks like a program of another worker
	child, out := foreignChild(t, `setsid sh -c 'trap "" TERM; echo $$; while :; do sleep 1000; done' & exec sleep 1000`)
	line := expect.Result(out.ReadString('\n')).Value(t)
	var waiting sync.WaitGroup
	waiting.Go(func() { child.Wait() })
	defer waiting.Wait()
	expect.Equal(t, Sweep(t.Context(), mark+"/2", quiet(t)), 0, "with another prefix … processes ended")
	for _, everybodys := range []string{"", "/", "tmp"} {
		expect.Equal(t, Sweep(t.Context(), everybodys, quiet(t)), 0, "with the prefix", everybodys, "processes ended")
	}
	n := Sweep(t.Context(), mark+"/1/", quiet(t))
	expect.True(t, n >= 2, "swept", n)
	var status syscall.WaitStatus // Wait4 sets it only if the orphan has become a child of this process
	swept, err := syscall.Wait4(pid(t, line), &status, 0, nil)
	if err == nil {
		expect.Equal(t, status.Signal(), syscall.SIGKILL, swept, "ended by", status)
	}
	until(t, "the process of the program is gone", func() bool { pr, err := look(pid(t, line)); return err != nil || !pr.alive() })
	if pr, err := look(bystander.Process.Pid); err != nil || !pr.alive() {
		t.Error("the bystander was ended")
	}
}

// A scan reads processes one after the other. It also records a process whose parent ends during the scan.
func TestProcessCutOffDuringAScanIsRecorded(t *testing.T) {
	p := &Process{host: &Host{}}
	p.key = key{1 << 25, 1}
	child, grandchild := proc{key: key{1<<25 + 1, 2}, ppid: p.pid, state: 'S'}, proc{key: key{1<<25 + 2, 3}, ppid: 1<<25 + 1, state: 'S'}
	main := proc{key: p.key, ppid: os.Getpid(), state: 'S'}
	f := &family{programs: map[key]*Process{p.key: p}, seen: map[key]*owner{}}
	for _, all := range [][]proc{{main, child, grandchild}, {main, grandchild}, {grandchild}} {
		expect.Len(t, f.assignOwners(all, true).living[p], len(all), "of", all)
	}
}

// A scan may miss a process that an orphan started just before the orphan ended. So after this scan, a process may be
// left that the scan has not found.
func TestOrphanThatEndsDuringAScanLeavesDoubt(t *testing.T) {
	p, other := &Process{host: &Host{}}, &Process{host: &Host{}}
	f := &family{programs: map[key]*Process{}, seen: map[key]*owner{}}
	for _, o := range []*owner{{program: p}, {suspects: map[*Process]struct{}{p: {}}}} {
		cmd, _ := foreignChild(t, "exit")
		awaitExit(cmd.Process.Pid)
		orphan := expect.Result(look(cmd.Process.Pid)).Value(t)
		f.seen[orphan.key] = o
		v := f.assignOwners([]proc{orphan}, true)
		expect.Len(t, v.living, 0)
		expect.True(t, v.ended[p], "as it ends", v)
		expect.True(t, !v.ended[other], "as it ends", v)
		if v := f.assignOwners(nil, true); len(v.living) != 0 || len(v.ended) != 0 {
			t.Errorf("later: %+v", v)
		}
		_ = cmd.Process.Release()
	}
}
