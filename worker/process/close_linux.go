package process

import (
	"maps"
	"slices"
)

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
