package chaos

import (
	"fmt"
	"net"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/redistest"
)

// A deployment is a Redis in one mode, such as a single server. Its methods are called by the goroutine of the test.
type deployment interface {
	// join returns the section [redis] of the configuration of a process, and the proxies through which the process
	// then reaches Redis.
	join() (section string, proxies []*redistest.Proxy)
	// direct returns the section [redis] of a configuration that uses no proxy.
	direct() string
	// primaries returns a client of each primary, without a limit for the time of a call. The caller closes it.
	primaries() []*redis.Client
	// kill kills a primary with SIGKILL.
	kill()
	// pause stops a primary with SIGSTOP.
	pause()
	// heal ends both faults, and returns when Redis answers.
	heal()
	// faults returns the faults that a world with this Redis has.
	faults() []fault
	// replicated reads, and returns when all replicas have what was read. It may read several times.
	replicated(read func())
}

// A single is one Redis with an append-only file.
type single struct {
	t      testing.TB
	server *redistest.Server
	clock  *redistest.Clock
	disk   *disk // with the append-only file; nil without a disk of its own
	down   bool
}

// newSingle starts a Redis. The argument is redis-server's setting appendfsync.
func newSingle(t testing.TB, fsync string) *single {
	s := &single{t: t, clock: redistest.NewClock(t)}
	// a small minimum, so that Redis rewrites its file while tasks run
	options := []redistest.Option{redistest.AOF(fsync), s.clock.Option(), redistest.Args(
		"--busy-reply-threshold", "20", "--auto-aof-rewrite-min-size", "1mb")}
	if canMount() {
		dir := t.TempDir()
		s.disk = newDisk(t, dir)
		options = append(options, redistest.Dir(dir))
	}
	s.server = redistest.Start(t, options...)
	return s
}

func (s *single) join() (section string, proxies []*redistest.Proxy) {
	proxy := redistest.NewProxy(s.t, s.server.Addr)
	return sectionOf(proxy.Addr), []*redistest.Proxy{proxy}
}

func (s *single) direct() string { return sectionOf(s.server.Addr) }

func sectionOf(addr string) string {
	host, port, _ := net.SplitHostPort(addr)
	return fmt.Sprintf("[redis]\nhost=%s\nport=%s\n", host, port)
}

func (s *single) primaries() []*redis.Client {
	return []*redis.Client{redistest.Client(s.t, redis.Options{Addr: s.server.Addr, MaxRetries: -1})}
}

func (s *single) faults() []fault {
	all := append(slices.Clone(ofProcesses), killRedis, stopRedis, flushScripts, killClients, busyScript, fullMemory, leapClock)
	if s.disk != nil {
		all = append(all, fullDisk, fullDiskOfWorker)
	}
	return all
}

func (s *single) replicated(read func()) { read() }

func (s *single) kill() {
	s.server.Kill()
	s.down = true
}

func (s *single) pause() { s.server.Signal(syscall.SIGSTOP) }

func (s *single) heal() {
	if s.down || s.server.Ended() { // with appendfsync always, Redis ends if its disk is full
		s.server.Restart()
		s.down = false
	} else {
		s.server.Signal(syscall.SIGCONT)
	}
}

// A leap is a time in which the clock of Redis was wrong, by the clock of this process.
type leap struct{ begin, end time.Time }

// maxLeap limits how wrong the clock of Redis may be.
const maxLeap = 30 * time.Second

// leap sets the clock of Redis forward or back for a while. TDF does not notice a leap of less than 5 s.
func (s *single) leap(w *world) (string, func()) {
	begin, d := time.Now(), time.Duration(w.random.Int64N(int64(2*maxLeap/time.Second)+1))*time.Second-maxLeap
	s.clock.Set(d)
	return fmt.Sprintf("by %v", d), func() {
		s.clock.Set(0)
		w.leaps = append(w.leaps, leap{begin, time.Now()})
	}
}
