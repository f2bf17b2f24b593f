package web

import (
	"maps"
	"net/netip"
	"sync"
	"time"
)

// A limiter allows a number of tries to log in for each key.
type limiter struct {
	mu   sync.Mutex
	free map[string]time.Time // when the tries so far would have ended, if they had come one gap after the other
}

// mostKeys is the number of keys from which on a limiter forgets those that have made no try lately.
const mostKeys = 10_000

// Between two tries to log in from one address must be loginGap on average, but those of loginBurst may come at once.
const (
	loginGap   = 2 * time.Second
	loginBurst = 20 * time.Second
)

// take counts a try. If there were too many, it returns how long the client must wait.
func (l *limiter) take(key string, now time.Time) (wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	free := l.free[key]
	if free.Before(now) {
		free = now
	}
	if wait = free.Add(loginGap).Sub(now) - loginBurst; wait > 0 {
		return wait
	}
	if len(l.free) >= mostKeys {
		l.forget(now)
	}
	l.free[key] = free.Add(loginGap)
	return 0
}

// forget removes the keys whose tries no longer count. If there are still too many keys, it removes all of them,
// because a large map would cost more than it protects.
func (l *limiter) forget(now time.Time) {
	maps.DeleteFunc(l.free, func(_ string, free time.Time) bool { return free.Before(now) })
	if len(l.free) >= mostKeys {
		clear(l.free)
	}
}

// AddressOf returns the key of a client's address. The addresses of one IPv6 network share a key, because one client
// may have all of them.
func AddressOf(remote string) string {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote
	}
	return keyOf(at.Addr())
}

func keyOf(ip netip.Addr) string {
	ip = ip.Unmap().WithZone("")
	if ip.Is6() {
		if network, err := ip.Prefix(64); err == nil {
			return network.String()
		}
	}
	return ip.String()
}
