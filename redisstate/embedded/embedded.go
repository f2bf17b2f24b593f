// Package embedded runs a Redis inside the process (miniredis), for trying things out and
// for tests. It keeps nothing when it stops. Only commands and examples import it: it makes
// a binary larger, and who has a Redis does not need it.
package embedded

import (
	"fmt"
	"net"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// A Redis is an embedded one, listening on the loopback interface only.
type Redis struct {
	server *miniredis.Miniredis
	stop   chan struct{}
	done   chan struct{}
}

// tick is how often keys that expire are looked at; miniredis does not do so by itself.
const tick = time.Second

// Start listens on addr, such as 127.0.0.1:6379; port 0 takes a free one.
func Start(addr string) (*Redis, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("embedded redis: %w", err)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return nil, fmt.Errorf("embedded redis: %s is not on the loopback interface", addr)
	}
	r := &Redis{server: miniredis.NewMiniRedis(), stop: make(chan struct{}), done: make(chan struct{})}
	if err := r.server.StartAddr(addr); err != nil {
		return nil, fmt.Errorf("embedded redis: %w", err)
	}
	go r.age()
	return r, nil
}

func (r *Redis) age() {
	defer close(r.done)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			r.server.FastForward(tick)
		case <-r.stop:
			return
		}
	}
}

// Addr returns host:port.
func (r *Redis) Addr() string { return r.server.Addr() }

// Close stops it; all that it held is gone.
func (r *Redis) Close() {
	close(r.stop)
	<-r.done
	r.server.Close()
}
