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

// A Proxy simulates a bad network between clients and a Redis. A new Proxy passes all data. A Proxy is safe for
// concurrent use.
type Proxy struct {
	Addr string // host:port to which clients connect

	t      testing.TB
	target string
	links  sync.WaitGroup // goroutines of the links and of the listener

	mu       sync.Mutex
	listener net.Listener // nil while the proxy refuses connections
	open     map[*link]struct{}
	fault    fault
	resumed  chan struct{} // closed by Resume
	dropped  int
	held     int
	free     [2]time.Time // for each direction, when the limited rate allows the next piece
}

// A fault holds the current faults of a proxy.
type fault struct {
	drops int                         // number of commands of which something is still to be dropped
	lost  loss                        // what is dropped of them
	match func(command []string) bool // reports whether something of a command is dropped
	delay time.Duration               // delay of each frame
	rate  int                         // bytes per second in each direction; 0 means no limit
	alter func(reply []byte) []byte   // returns what clients get instead of a reply; may be nil
	then  func()                      // is called after each drop; may be nil
}

// NewProxy starts a proxy for the Redis at target (host:port). The proxy ends with the test.
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

// Scripts reports whether a command is a call of a script. Use it as an argument of DropReplies.
func Scripts(command []string) bool {
	names := []string{"EVAL", "EVALSHA", "EVAL_RO", "EVALSHA_RO", "FCALL", "FCALL_RO"}
	return slices.Contains(names, strings.ToUpper(command[0]))
}

// DropReplies drops the replies to the next n commands for which match returns true. Redis runs these commands. When
// the reply arrives, the proxy closes the connection and does not pass the reply. The replies to later commands of the
// same pipeline are lost, too.
func (p *Proxy) DropReplies(n int, match func(command []string) bool) { p.drop(n, wholeReply, match) }

// TruncateReplies does the same as DropReplies, but passes the first half of each reply before it closes the
// connection.
func (p *Proxy) TruncateReplies(n int, match func(command []string) bool) {
	p.drop(n, halfReply, match)
}

// DropCommands closes the connection instead of passing the next n commands for which match returns true. Redis does
// not run these commands.
func (p *Proxy) DropCommands(n int, match func(command []string) bool) {
	p.drop(n, wholeCommand, match)
}

// Then calls a function at each drop until Resume, before the client's connection is closed.
func (p *Proxy) Then(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault.then = f
}

func (p *Proxy) drop(n int, lost loss, match func(command []string) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault.drops, p.fault.lost, p.fault.match = n, lost, match
}

// Dropped returns how many commands and replies were dropped. Tests use it to check that the fault happened.
func (p *Proxy) Dropped() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dropped
}

// Delay delays every command and every reply by d. Their order does not change.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault.delay = d
}

// Hang holds all commands and replies until Resume. Connections stay open.
func (p *Proxy) Hang() { p.Delay(math.MaxInt64) }

// Limit limits the rate of all connections together, in each direction, until Resume.
func (p *Proxy) Limit(bytesPerSecond int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault.rate = bytesPerSecond
}

// Alter lets a function change each reply until Resume. The function returns the bytes that the client gets instead. It
// is called once at a time.
func (p *Proxy) Alter(alter func(reply []byte) []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault.alter = alter
}

func (p *Proxy) altered(reply []byte) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault.alter == nil {
		return reply
	}
	return p.fault.alter(reply)
}

// Held returns how many commands and replies the proxy delays at present.
func (p *Proxy) Held() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held
}

// Refuse refuses new connections until Resume. Existing connections stay open (see Cut).
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

// Resume ends all faults. The proxy passes the delayed commands and replies, and accepts connections.
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
		if err != nil { // the listener was closed
			return
		}
		p.links.Go(func() { p.serve(listener, client) })
	}
}

// serve connects a client to Redis. If Redis does not listen, serve closes the client's connection.
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

// enter registers a link, so that Cut closes it. It returns false if Refuse was called after the connection was
// accepted.
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

// claimDrop returns what to drop of a command. If this is not nothing, it subtracts one from the number of commands of
// which something is still to be dropped.
func (p *Proxy) claimDrop(command []string) loss {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault.drops == 0 || len(command) == 0 || !p.fault.match(command) {
		return nothing
	}
	p.fault.drops--
	return p.fault.lost
}

func (p *Proxy) countDrop() {
	p.mu.Lock()
	p.dropped++
	then := p.fault.then
	p.mu.Unlock()
	if then != nil {
		then()
	}
}

// hold waits for the delay of a frame, or until Resume. It returns false if the link is closed during the wait.
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

// reserve limits the rate of a link. It returns how many of the next n bytes the link may write as one piece, and how
// long the link must wait before the write. If the channel resumed is closed, the link must stop waiting.
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
