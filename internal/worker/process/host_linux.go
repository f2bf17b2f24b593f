package process

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/tdf-framework/tdf/internal/hidden"
)

// While programs run, the Host looks for ended orphans once per tick.
const tick = time.Second

// A Host starts programs, with the isolation that this machine allows.
type Host struct {
	cfg      Config
	log      *slog.Logger
	users    []runAs  // one user for each slot, or one user for all slots
	cgroups  *cgroups // nil if there are no cgroups
	noGroup  error    // why there are no cgroups
	claimed  bool     // whether claim was called; Config.Sole asks for it
	adopting bool     // whether adopt was called
	null     *os.File // /dev/null

	opening sync.RWMutex // guards closed; held for reading while a program starts
	closed  bool

	mu       sync.Mutex // guards running
	running  map[*Process]struct{}
	stop     chan struct{}
	watching sync.WaitGroup
}

// New finds out which isolation this machine allows, and prepares it. It makes this process non-dumpable for good, so
// that programs of the same user cannot read its environment and memory. The error is a *[ConfigError] if this machine
// does not allow what Config asks for.
func New(cfg Config) (*Host, error) { return newHost(cfg, true) }

func newHost(cfg Config, withCgroups bool) (*Host, error) {
	h := &Host{cfg: cfg, log: cfg.Log, running: map[*Process]struct{}{}, stop: make(chan struct{})}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	if err := h.prepare(withCgroups); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	h.watching.Go(h.watch)
	return h, nil
}

func (h *Host) prepare(withCgroups bool) error {
	if _, err := look(os.Getpid()); err != nil {
		return fmt.Errorf("read /proc to find the processes of programs: %w", err)
	}
	// Go starts a child to find out whether it can use pidfds. This call makes Go start that child now, so that no scan
	// mistakes it for an orphan later.
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Release()
	}
	if err := hidden.Process(); err != nil {
		h.log.Warn("programs can read the environment of this process: it cannot be made non-dumpable", "error", err)
	}
	var err error
	if h.null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
		return err
	}
	if err := ours.adopt(); err != nil {
		return err
	}
	h.adopting = true
	if err := h.prepareUser(); err != nil {
		return err
	}
	h.noGroup = errors.New("switched off")
	if withCgroups {
		h.prepareCgroups()
	}
	if err := h.checkMemory(); err != nil {
		return err
	}
	if h.cfg.Sole {
		ours.claim()
		h.claimed = true
	}
	return nil
}

// nowhere is the path of a program that does not exist. An attempt to start this program tests all steps before the
// exec.
const nowhere = "/proc/self/tdf-nowhere"

// try tries to start the missing program nowhere in the same way as a real program. It returns nil if all steps before
// the exec succeed.
func (h *Host) try(change func(*syscall.SysProcAttr)) error {
	attr := h.attr(1)
	change(attr)
	_, err := os.StartProcess(nowhere, []string{nowhere}, &os.ProcAttr{Env: []string{}, Sys: attr})
	if errors.Is(err, syscall.ENOENT) {
		return nil
	}
	return err
}

func (h *Host) prepareUser() error {
	var err error
	if h.users, err = lookUp(h.cfg); err != nil || h.cfg.User == "" {
		return err
	}
	if !h.OtherUser() {
		return nil
	}
	if err := h.try(func(*syscall.SysProcAttr) {}); err != nil {
		return userError(h.cfg.User, "only root can run programs as another user: %w", errors.Unwrap(err))
	}
	return nil
}

func (h *Host) prepareCgroups() {
	c, err := h.newCgroups()
	h.noGroup = err
	if err != nil {
		return
	}
	h.cgroups = c
	if c.stale > 0 {
		h.log.Warn("ended processes that an earlier worker of this name had left running", "processes", c.stale)
	}
	if len(c.stuck) > 0 {
		h.log.Warn("processes that an earlier worker left behind do not end: continuing without waiting for them",
			"pids", firstPIDs(c.stuck))
	}
	ours.registerCgroup(c.path, true)
}

// newCgroups returns cgroups that it has tried.
func (h *Host) newCgroups() (*cgroups, error) {
	c, err := newCgroups(h.cfg.Name, h.cfg.Sole)
	if err != nil {
		return nil, err
	}
	if err := h.tryCgroup(c); err != nil {
		_ = c.close()
		return nil, err
	}
	return c, nil
}

func (h *Host) tryCgroup(c *cgroups) error {
	g, err := c.newGroup(h.cfg.Memory)
	if err != nil {
		return err
	}
	defer func() { _ = c.remove(g) }()
	return h.try(func(attr *syscall.SysProcAttr) { attr.UseCgroupFD, attr.CgroupFD = true, int(g.open.Fd()) })
}

// checkMemory returns an error if there is a limit of memory that no cgroup can enforce.
func (h *Host) checkMemory() error {
	why := h.noGroup
	if h.cgroups != nil {
		why = h.cgroups.noMemory
	}
	if h.cfg.Memory == 0 || why == nil {
		return nil
	}
	return &ConfigError{"memory", fmt.Errorf("the limit needs a cgroup (v2) of this process, such as a systemd unit with "+
		"Delegate=yes has: %w", why)}
}

// Isolation says how programs are isolated, for the log: the kinds of isolation in force, and what a limit of memory
// lacks.
func (h *Host) Isolation() (reached []string, missing string) {
	reached = []string{"subreaper"}
	switch {
	case !h.OtherUser():
	case len(h.users) < h.cfg.Slots:
		reached = append(reached, "user (one for all slots)")
	default:
		reached = append(reached, "user")
	}
	if h.cgroups == nil {
		return reached, "cgroup: " + h.noGroup.Error()
	}
	if h.cgroups.noMemory != nil {
		missing = h.cgroups.noMemory.Error()
	}
	return append(reached, "cgroup"), missing
}

// Hold says that other code may start children of this process until release is called. That code must reap its
// children before it calls release. Hold is needed only with Config.Sole.
func (h *Host) Hold() (release func()) {
	if !h.cfg.Sole {
		return func() {}
	}
	return ours.hold()
}

func (h *Host) lingerGrace() <-chan time.Time {
	if h.cfg.LingerGrace == nil {
		over := make(chan time.Time)
		close(over)
		return over
	}
	return h.cfg.LingerGrace()
}

func (h *Host) add(p *Process) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running[p] = struct{}{}
}

func (h *Host) remove(p *Process) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.running, p)
}

// watch looks for orphans while programs run. It reaps orphans that have ended. It also records the owners of
// processes while these owners can still be determined.
func (h *Host) watch() {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-h.stop:
			return
		case <-ticker.C:
			h.mu.Lock()
			busy := len(h.running) > 0
			h.mu.Unlock()
			if busy && h.cgroups == nil || anyEnded() != 0 {
				ours.scan()
			}
		}
	}
}

// Close kills the programs that still run. It undoes the changes that New made, except that this process stays
// non-dumpable. Close may be called several times.
func (h *Host) Close() error {
	h.opening.Lock()
	again := h.closed
	h.closed = true
	h.opening.Unlock()
	h.mu.Lock()
	running := slices.Collect(maps.Keys(h.running))
	h.mu.Unlock()
	if again {
		return nil
	}
	now := make(chan struct{})
	close(now)
	for _, p := range running {
		p.End(nil, now)
	}
	close(h.stop)
	h.watching.Wait()
	if anyEnded() != 0 {
		ours.scan() // an orphan may have ended just now
	}
	if h.claimed {
		ours.disclaim()
	}
	if h.adopting {
		ours.release()
	}
	if h.null != nil {
		h.null.Close()
	}
	if h.cgroups != nil {
		ours.registerCgroup(h.cgroups.path, false)
		return h.cgroups.close()
	}
	return nil
}
