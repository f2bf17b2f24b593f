package redistest

import (
	"math"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A Proxy stands between clients and a Redis and does what bad networks do. At first it
// passes everything on. Its methods may be called from any goroutine, at any time.
type Proxy struct {
	Addr string // host:port, for the clients

	t      testing.TB
	target string
	links  sync.WaitGroup // one for each link and for the listener's loop

	mu       sync.Mutex
	listener net.Listener // nil while connections are refused
	open     map[*link]struct{}
	fault    fault
	resumed  chan struct{} // closed by Resume
	dropped  int
	held     int
	free     [2]time.Time // when a limited link can carry more, by direction
}

// A fault is what the proxy does instead of passing everything on.
type fault struct {
	drops int                         // replies still to be dropped
	match func(command []string) bool // of which commands
	delay time.Duration               // of every frame
	rate  int                         // bytes per second in each direction; 0: no limit
}

// NewProxy starts a proxy for the Redis at target, host:port. It ends with the test.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	listener, claim, err := listenFree()
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{
		Addr: listener.Addr().String(), t: t, target: target, listener: listener,
		open: map[*link]struct{}{}, resumed: make(chan struct{}),
	}
	p.links.Go(func() { p.accept(listener) })
	t.Cleanup(func() {
		p.Refuse()
		p.Cut()
		p.links.Wait()
		claim.Close()
	})
	return p
}

// Scripts matches every call of a script.
func Scripts(command []string) bool {
	names := []string{"EVAL", "EVALSHA", "EVAL_RO", "EVALSHA_RO", "FCALL", "FCALL_RO"}
	return slices.Contains(names, strings.ToUpper(command[0]))
}

// DropReplies has the next n commands that match run, and closes each one's connection
// when its reply has come from Redis, without passing the reply on. Commands that follow
// in the same pipeline are lost with it.
func (p *Proxy) DropReplies(n int, match func(command []string) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault.drops, p.fault.match = n, match
}

// Dropped returns how many replies were dropped so far: whether a fault happened at all.
func (p *Proxy) Dropped() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dropped
}

// Delay holds every command, and every reply, for d. What follows it waits behind it.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault.delay = d
}

// Hang is a network that lost its way: connections stay, and nothing comes through until
// Resume.
func (p *Proxy) Hang() { p.Delay(math.MaxInt64) }

// Limit makes the network slow: in each direction, all connections together carry at most so many bytes per
// second, until Resume.
func (p *Proxy) Limit(bytesPerSecond int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault.rate = bytesPerSecond
}

// Held returns how many commands and replies are being held back right now.
func (p *Proxy) Held() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held
}

// Refuse has new connections refused. Those that exist live on: see Cut.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		p.listener.Close()
		p.listener = nil
	}
}

// Cut closes all connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.open {
		l.close()
	}
}

// Resume ends all faults: what was held is passed on, connections are accepted.
func (p *Proxy) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = fault{}
	close(p.resumed)
	p.resumed = make(chan struct{})
	if p.listener != nil {
		return
	}
	listener, err := net.Listen("tcp", p.Addr)
	if err != nil {
		p.t.Errorf("the proxy cannot listen again: %v", err)
		return
	}
	p.listener = listener
	p.links.Go(func() { p.accept(listener) })
}

func (p *Proxy) accept(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil { // closed
			return
		}
		p.links.Go(func() { p.serve(listener, client) })
	}
}

// serve joins client to Redis. A Redis that is not there looks like a closed connection.
func (p *Proxy) serve(listener net.Listener, client net.Conn) {
	redis, err := net.Dial("tcp", p.target)
	if err != nil {
		client.Close()
		return
	}
	l := &link{proxy: p, client: client, redis: redis, closed: make(chan struct{})}
	if p.enter(listener, l) {
		l.run()
		p.leave(l)
	} else {
		l.close()
	}
}

// enter makes l one that Cut closes; not if Refuse came since it was accepted.
func (p *Proxy) enter(listener net.Listener, l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != listener {
		return false
	}
	p.open[l] = struct{}{}
	return true
}

func (p *Proxy) leave(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, l)
}

// claimDrop reports whether the reply to command is to be dropped.
func (p *Proxy) claimDrop(command []string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault.drops == 0 || len(command) == 0 || !p.fault.match(command) {
		return false
	}
	p.fault.drops--
	return true
}

func (p *Proxy) countDrop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropped++
}

// hold waits as long as frames are delayed, or until Resume. It reports false if the link
// was closed meanwhile.
func (p *Proxy) hold(l *link) bool {
	p.mu.Lock()
	delay, resumed := p.fault.delay, p.resumed
	p.mu.Unlock()
	if delay == 0 {
		return true
	}
	p.countHeld(1)
	defer p.countHeld(-1)
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-resumed:
	case <-l.closed:
		return false
	}
	return true
}

// reserve returns how many of the next n bytes may pass, and when they will have passed.
func (p *Proxy) reserve(d direction, n int) (piece int, wait time.Duration, resumed chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	rate := p.fault.rate
	if rate == 0 {
		return n, 0, p.resumed
	}
	piece = min(n, max(1, rate/piecesPerSecond))
	now := time.Now()
	if earliest := now.Add(-burst); p.free[d].Before(earliest) {
		p.free[d] = earliest
	}
	p.free[d] = p.free[d].Add(time.Duration(piece) * time.Second / time.Duration(rate))
	return piece, p.free[d].Sub(now), p.resumed
}

func (p *Proxy) countHeld(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held += n
}
