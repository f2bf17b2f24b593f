package process

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/expect"
)

// leftovers are scripts that leave a process behind when they end. Each process prints its PID.
var leftovers = map[string]string{
	"in the background":  `sleep 1000 & echo $!`,
	"in its own session": `setsid sh -c 'echo $$; exec sleep 1000' & while ! [ -s out ]; do sleep 0.01; done`,
	"forked twice":       `(setsid sh -c '(echo $$; exec sleep 1000) & wait' &) & while ! [ -s out ]; do sleep 0.01; done`,
	"without its mark":   `env -i sh -c 'sleep 1000 & echo $!'`,
	"holding the output": `sh -c 'echo $$; exec sleep 1000' & while ! [ -s out ]; do sleep 0.01; done`,
	"of another child":   `(sleep 1000 & echo $!) ; true`,
	"stopped":            `sleep 1000 & echo $!; kill -STOP $!`,
}

func TestLeftProcessesAreEnded(t *testing.T) {
	for name, script := range leftovers {
		t.Run(name, func(t *testing.T) {
			bothWays(t, func(t *testing.T, s *site) {
				if name == "stopped" { // a stopped process gets SIGTERM only when it continues
					s.host.cfg.LingerGrace = over
				}
				r := s.sh(script)
				ended := r.wait()
				expect.Equal(t, ended.Exit, "0")
				expect.NotEqual(t, ended.Lingered, 0)
				pid := pid(t, strings.Fields(r.printed())[0])
				expect.True(t, gone(pid), "process", pid, "remains")
			})
		})
	}
}

const deaf = `trap "" TERM; (trap "" TERM; setsid sh -c 'while :; do sleep 1000; done' & while :; do sleep 1000; done) & echo begun; while :; do sleep 1000; done`

func TestSIGTERMIgnoredByAll(t *testing.T) {
	bothWays(t, func(t *testing.T, s *site) {
		for _, how := range []string{"grace", "noGrace"} {
			r := s.sh(deaf)
			r.awaitLines(1)
			grace, noGrace := make(chan time.Time), make(chan struct{})
			var wg sync.WaitGroup
			wg.Go(func() { r.End(grace, noGrace) })
			until(t, "SIGTERM is sent", r.ending.Load)
			if how == "grace" {
				grace <- time.Time{}
			} else {
				close(noGrace)
			}
			wg.Wait()
			ended := r.wait()
			expect.Equal(t, ended.Exit, "signal: killed", how)
			expect.Equal(t, ended.Lingered, 0, how)
			expect.Equal(t, ended.OutOfMemory, "", how)
		}
	})
}

// A process that was left behind and ignores SIGTERM is killed after the grace period.
func TestLeftProcessesAreKilledAfterTheGrace(t *testing.T) {
	bothWays(t, func(t *testing.T, s *site) {
		grace := make(chan time.Time)
		asked := make(chan struct{})
		s.host.cfg.LingerGrace = func() <-chan time.Time { close(asked); return grace }
		r := s.sh(`sh -c 'trap "" TERM; echo begun; while :; do sleep 1000; done' & while ! [ -s out ]; do sleep 0.01; done`)
		<-asked
		select {
		case <-r.Done():
			t.Error("the program is done before the end of the grace period")
		case grace <- time.Time{}:
		}
		ended := r.wait()
		expect.Equal(t, ended.Exit, "0")
		expect.NotEqual(t, ended.Lingered, 0)
	})
}

// All processes of a program get SIGTERM, and can end in their own way.
func TestSIGTERMReachesAll(t *testing.T) {
	bothWays(t, func(t *testing.T, s *site) {
		r := s.sh(`trap 'echo main; wait; exit 7' TERM
			setsid sh -c 'trap "echo child; exit" TERM; echo begun; while :; do sleep 0.01; done' & echo begun; while :; do sleep 0.01; done`)
		r.awaitLines(2)
		r.End(nil, nil)
		out, ended := r.printed(), r.wait()
		expect.Equal(t, ended.Exit, "7")
		expect.Contains(t, out, "main\n")
		expect.Contains(t, out, "child\n")
	})
}

func TestExit(t *testing.T) {
	for script, want := range map[string]string{
		"exit 0": "0", "exit 1": "1", "exit 255": "255",
		"kill -KILL $$": "signal: killed", "kill -SEGV $$": "signal: segmentation fault",
		"kill -ABRT $$": "signal: aborted", "kill -TERM $$": "signal: terminated",
		"exec >&- 2>&-; sleep 0.1; exit 3": "3", // the program closes its outputs before it ends
	} {
		t.Run(script, func(t *testing.T) {
			bothWays(t, func(t *testing.T, s *site) {
				got := s.sh("ulimit -c 0; " + script).wait()
				expect.Equal(t, got.Exit, want)
				expect.Equal(t, got.Lingered, 0)
				expect.Equal(t, got.OutOfMemory, "")
				expect.Compare(t, got.Ran, ">", 0)
			})
		})
	}
}

func TestStdinIsEmptyAndNothingIsInherited(t *testing.T) {
	bothWays(t, func(t *testing.T, s *site) {
		r := s.sh(`cat; echo $? $#`)
		r.wait()
		expect.Equal(t, r.printed(), "0 0\n", "printed")
		r = s.sh("ls /proc/$$/fd; :") // ":" keeps the shell from replacing itself with ls, which would have the directory open
		r.wait()
		expect.Equal(t, r.printed(), "0\n1\n2\n", "descriptors")
	})
}

func TestStartErrors(t *testing.T) {
	for path, want := range map[string]error{
		"./none": syscall.ENOENT, "/etc": syscall.EACCES, "./elf": syscall.ENOEXEC, "./script": syscall.ENOENT,
	} {
		t.Run(path, func(t *testing.T) {
			bothWays(t, func(t *testing.T, s *site) {
				write(t, s.dir+"/elf", "\x7fELF")
				write(t, s.dir+"/script", "#!/no/such/interpreter\n")
				expect.Result(s.tryStart(Command{Path: path, Dir: s.dir})).FailsWith(t, want)
				_, err := s.tryStart(Command{Path: "/bin/true", Args: []string{strings.Repeat("x", 1<<18)}})
				expect.True(t, errors.Is(err, syscall.E2BIG), "a long argument", err)
			})
		})
	}
}

func TestEightAtOnce(t *testing.T) {
	bothWays(t, func(t *testing.T, s *site) {
		var slots sync.WaitGroup
		for slot := range 8 {
			slots.Go(func() {
				for i := range 10 {
					r := s.sh(fmt.Sprintf("(setsid sleep 1000 &) ; exit %d", slot*10+i))
					expect.Equal(t, r.wait().Exit, fmt.Sprint(slot*10+i))
				}
			})
		}
		slots.Wait()
	})
}

// A long program and a short program run at the same time. The short program's processes end. The long program runs
// on, and its resource usage does not include those processes.
func TestOneEndsTheOtherRunsOn(t *testing.T) {
	bothWays(t, func(t *testing.T, s *site) {
		long := s.sh("setsid sleep 1000 & echo begun; wait")
		long.awaitLines(1)
		short := s.sh("setsid sleep 1000 &")
		short.wait()
		expect.Equal(t, len(long.members()), 2, "the long one … processes")
		ended := long.end()
		expect.True(t, strings.HasPrefix(ended.Exit, "signal: "), ended)
	})
}

func TestCloseEndsWhatRuns(t *testing.T) {
	bothWays(t, func(t *testing.T, s *site) {
		r := s.sh(deaf)
		r.awaitLines(1)
		err := s.host.Close()
		expect.True(t, err == nil, err)
		expect.Equal(t, r.wait().Exit, "signal: killed")
		expect.Result(s.tryStart(Command{Path: "/bin/true"})).FailsWith(t, errClosed, "after Close")
	})
}

// Processes that are killed are stopped first, also those that begin while the Host stops others. Processes that got
// SIGKILL before are not stopped.
func TestProcessesAreStoppedBeforeTheyAreKilled(t *testing.T) {
	s := newSite(t, false, Config{})
	r := s.sh("setsid sleep 1000 & sleep 1000 & echo begun; wait")
	r.awaitLines(1)
	all := r.members()
	expect.MustLen(t, all, 3)
	none := func(proc) bool { return false }
	isStopped := func(pr proc) bool { now, _ := look(pr.pid); return now.state == 'T' }
	killed, first := map[key]bool{all[0].key: true}, all[1:2] // halt searches for the third process itself
	expect.Len(t, r.halt(first, killed, none), 3)
	for _, pr := range all[1:] {
		until(t, "the process is stopped", func() bool { return isStopped(pr) })
	}
	expect.True(t, !isStopped(all[0]), "the process that got SIGKILL before was stopped")
	expect.Len(t, r.halt(all, nil, func(proc) bool { return true }), 0)
	r.end()
}
