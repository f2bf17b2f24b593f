// Package embedded runs a Redis (miniredis) inside the process, for first steps and for tests. It loses all data when it
// stops. Only commands, examples and tests import it, since it makes a binary larger, and most users have a Redis.
//
// Clients do not reach miniredis itself, which trusts them: a negative count in a request would end the process. A front
// reads requests within bounds, checks the password, and lets only known commands through. It runs them in its own
// goroutines, where a panic of miniredis becomes an error for one client.
package embedded

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
)

// A Redis is an embedded Redis. It listens only on the loopback interface.
type Redis struct {
	password string
	scripts  map[string]bool // SHA-1 of the scripts that may run without a password; nil for any
	release  string          // the release of TDF that has these scripts

	listener net.Listener
	serving  sync.WaitGroup
	stop     chan struct{} // closed by Close

	mu       sync.Mutex // held while a command runs; protects the fields below
	mini     *miniredis.Miniredis
	commands *server.Server
	waiting  waiters
	clients  map[*client]struct{}
	clockSet bool                            // by SetTime
	panicked func(request []string, why any) // for tests
}

// tick is how often expired keys are removed; miniredis does not do so by itself.
const tick = time.Second

// An Option configures [Start].
type Option func(*Redis)

// Password sets the password of Redis's user default. Without it, every client that can connect may use the Redis.
func Password(password string) Option { return func(r *Redis) { r.password = password } }

// Scripts allows only the Lua scripts with these SHA-1 sums, in hexadecimal, unless there is a password. Other scripts
// get an error that names the release. Without this option every script may run, even one that never ends.
func Scripts(release string, sums ...string) Option {
	return func(r *Redis) {
		r.release, r.scripts = release, map[string]bool{}
		for _, sum := range sums {
			r.scripts[sum] = true
		}
	}
}

// Start listens on addr, such as 127.0.0.1:6379. Port 0 takes a free port.
func Start(addr string, options ...Option) (*Redis, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("embedded redis: %w", err)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return nil, fmt.Errorf("embedded redis: %s is not on the loopback interface", addr)
	}
	r := &Redis{
		mini: miniredis.NewMiniRedis(), stop: make(chan struct{}), waiting: waiters{}, clients: map[*client]struct{}{},
		panicked: func([]string, any) {},
	}
	for _, option := range options {
		option(r)
	}
	if err := r.startMiniredis(); err != nil {
		return nil, fmt.Errorf("embedded redis: %w", err)
	}
	if r.listener, err = net.Listen("tcp", addr); err != nil {
		r.mini.Close()
		return nil, fmt.Errorf("embedded redis: %w", err)
	}
	r.serving.Go(r.accept)
	r.serving.Go(r.age)
	return r, nil
}

// startMiniredis starts miniredis without a listener. Its Dial does that; the connection is not used.
func (r *Redis) startMiniredis() error {
	c, err := r.mini.Dial()
	if err != nil {
		return err
	}
	r.commands = r.mini.Server()
	return c.Close()
}

func (r *Redis) age() {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			r.mu.Lock()
			if !r.clockSet {
				r.mini.FastForward(tick)
			}
			r.mu.Unlock()
		case <-r.stop:
			return
		}
	}
}

// SetTime stops Redis's clock at t. A later call moves it. TIME, scripts and keys with a time to live follow this clock.
// The timeouts of blocking commands, such as BLPOP, do not.
func (r *Redis) SetTime(t time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mini.SetTime(t)
	if !r.clockSet {
		r.mini.ClockTTL(true)
		r.clockSet = true
	}
}

// acceptPause is the wait after a connection could not be accepted, as when the process has no file descriptor left.
const acceptPause = 50 * time.Millisecond

func (r *Redis) accept() {
	for {
		conn, err := r.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			select {
			case <-time.After(acceptPause):
			case <-r.stop:
			}
		default:
			r.admit(conn)
		}
	}
}

// maxClients is the largest number of connections, like Redis's maxclients.
const maxClients = 20_000

func (r *Redis) admit(conn net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := newClient(r, conn)
	switch {
	case r.stopped():
		conn.Close()
	case len(r.clients) >= maxClients:
		_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = conn.Write([]byte("-ERR max number of clients reached\r\n"))
		conn.Close()
	default:
		r.clients[c] = struct{}{}
		r.serving.Go(c.serve)
	}
}

// leave forgets a client whose connection has ended.
func (r *Redis) leave(c *client) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.clients, c)
}

func (r *Redis) stopped() bool {
	select {
	case <-r.stop:
		return true
	default:
		return false
	}
}

// Addr returns host:port.
func (r *Redis) Addr() string { return r.listener.Addr().String() }

// Close stops the Redis and drops its data.
func (r *Redis) Close() {
	r.mu.Lock()
	close(r.stop)
	for c := range r.clients {
		c.conn.Close()
	}
	r.mu.Unlock()
	r.listener.Close()
	r.serving.Wait()
	r.mini.Close()
}
