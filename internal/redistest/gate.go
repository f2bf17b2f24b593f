package redistest

import (
	"crypto/tls"
	"io"
	"net"
	"sync"
	"testing"
)

// A Gate passes bytes between a Redis and the hosts that may reach it, in any protocol. It is the address that a Redis
// announces to its replicas and sentinels, so that a test can part them. A Gate is safe for concurrent use.
type Gate struct {
	Addr string // host:port to which all connect

	target string
	links  sync.WaitGroup

	mu     sync.Mutex
	alter  func(data string) string
	opened chan struct{} // closed and replaced by Open
	shut   map[string]bool
	conns  map[net.Conn]string // the hosts of the connections
}

// NewGate starts a gate for the Redis at target (host:port). The gate ends with the test. With a certificate, clients
// need TLS.
func NewGate(t testing.TB, target string, certificate ...tls.Certificate) *Gate {
	t.Helper()
	listener, claim, err := listenFree()
	if err != nil {
		t.Fatal(err)
	}
	g := &Gate{
		Addr: listener.Addr().String(), target: target, opened: make(chan struct{}), shut: map[string]bool{},
		conns: map[net.Conn]string{}, alter: func(data string) string { return data },
	}
	if len(certificate) > 0 {
		listener = tls.NewListener(listener, &tls.Config{Certificates: certificate})
	}
	g.links.Go(func() {
		for {
			from, err := listener.Accept()
			if err != nil { // the listener was closed
				return
			}
			g.links.Go(func() { g.serve(from) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		g.Open()
		g.end()
		g.links.Wait()
		claim.Close()
	})
	return g
}

// Alter lets a function change all bytes that come from the Redis.
func (g *Gate) Alter(alter func(data string) string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.alter = alter
}

// Shut holds all bytes from and to these hosts until Open. As in a partition, nobody learns of it.
func (g *Gate) Shut(hosts ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, host := range hosts {
		g.shut[host] = true
	}
}

// Open ends Shut, and closes the connections whose bytes it held.
func (g *Gate) Open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	shut := g.shut
	g.shut = map[string]bool{}
	close(g.opened)
	g.opened = make(chan struct{})
	for conn, host := range g.conns {
		if shut[host] {
			conn.Close()
		}
	}
}

// end closes all connections, and those that are being made.
func (g *Gate) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for conn := range g.conns {
		conn.Close()
	}
	g.conns = nil
}

func (g *Gate) serve(from net.Conn) {
	defer from.Close()
	host, _, _ := net.SplitHostPort(from.RemoteAddr().String())
	to, err := net.Dial("tcp", g.target)
	if err != nil {
		return
	}
	defer to.Close()
	if !g.enter(host, from, to) {
		return
	}
	defer g.leave(from, to)
	var both sync.WaitGroup
	both.Go(func() { g.pass(heldWriter{g, host, to, false}, from) })
	both.Go(func() { g.pass(heldWriter{g, host, from, true}, to) })
	both.Wait()
}

func (g *Gate) enter(host string, conns ...net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.conns == nil {
		return false
	}
	for _, c := range conns {
		g.conns[c] = host
	}
	return true
}

func (g *Gate) leave(conns ...net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range conns {
		delete(g.conns, c)
	}
}

// pass copies bytes until a connection ends, and then closes both.
func (g *Gate) pass(to heldWriter, from net.Conn) {
	defer to.to.Close()
	defer from.Close()
	_, _ = io.Copy(to, from) // the other side learns the end
}

// A heldWriter writes as long as its host is not shut out.
type heldWriter struct {
	gate      *Gate
	host      string
	to        net.Conn
	fromRedis bool
}

func (w heldWriter) Write(p []byte) (int, error) {
	w.gate.mu.Lock()
	shut, opened, alter := w.gate.shut[w.host], w.gate.opened, w.gate.alter
	w.gate.mu.Unlock()
	if shut {
		<-opened
		return 0, io.ErrClosedPipe // Open closes the connection
	}
	if !w.fromRedis {
		return w.to.Write(p)
	}
	_, err := io.WriteString(w.to, alter(string(p)))
	return len(p), err
}
