// Package embedded runs a Redis (miniredis) inside the process, for first steps and for tests. All data are lost when
// this Redis stops. Only commands, examples and tests import the package, because it makes a binary larger.
//
// Miniredis does not defend itself against bad requests: a negative count would crash the process. So this package puts
// a front between the clients and miniredis. The front limits the size of requests, checks the password, and allows
// only known commands. It calls miniredis in its own goroutines. If miniredis panics there, only one client gets an
// error.
package embedded

import (
	"crypto/rand"
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
	scripts  map[string]bool // SHA-1 of the scripts that may run without a password; nil allows every script
	runID    string          // names this run, as that of a redis-server
	release  string          // the version of TDF that contains these scripts

	listener net.Listener
	serving  sync.WaitGroup
	stop     chan struct{} // closed by Close

	mu       sync.Mutex // held while a command runs; protects the fields below
	mini     *miniredis.Miniredis
	commands *server.Server
	waiting  waiters
	clients  map[*client]struct{}
	clockSet bool                            // whether SetTime was called
	panicked func(request []string, why any) // called after a panic of miniredis; only for tests
}

// tick is the time between two removals of expired keys. Miniredis does not remove expired keys itself.
const tick = time.Second

// An Option configures [Start].
type Option func(*Redis)

// Password sets the password of Redis's user default. Without a password, every client that can connect may use the
// Redis.
func Password(password string) Option { return func(r *Redis) { r.password = password } }

// Scripts allows only the Lua scripts with these SHA-1 sums, in hexadecimal. For other scripts, a client gets an error
// that names the release of TDF. If there is a password, the option has no effect. Without this option, every script
// may run, even an endless one.
func Scripts(release string, sums ...string) Option {
	return func(r *Redis) {
		r.release, r.scripts = release, map[string]bool{}
		for _, sum := range sums {
			r.scripts[sum] = true
		}
	}
}

// Start starts a Redis that listens on addr, such as 127.0.0.1:6379. If the port is 0, Start uses a free port.
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
		panicked: func([]string, any) {}, runID: rand.Text(),
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

// startMiniredis starts miniredis without a listener. For this, it calls miniredis's method Dial, and closes the
// connection that Dial returns.
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

// SetTime stops Redis's clock at t. Call SetTime again to move the clock. The command TIME, scripts, and the expiry of
// keys use this clock. The timeouts of blocking commands, such as BLPOP, do not use it.
func (r *Redis) SetTime(t time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mini.SetTime(t)
	if !r.clockSet {
		r.mini.ClockTTL(true)
		r.clockSet = true
	}
}

// acceptPause is the pause after accepting a connection has failed, for example because the process has no free file
// descriptor.
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

// maxClients is the maximum number of connections, like the setting maxclients of Redis.
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

// leave removes a client from the list of clients, after its connection has ended.
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

// Addr returns the address on which the Redis listens, as host:port.
func (r *Redis) Addr() string { return r.listener.Addr().String() }

// Close stops the Redis and deletes its data.
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
