package redistest

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports below the range that systems hand out by themselves (from 32768 on Linux): there,
// while a server is down, a client's own connection could take its port. A cluster's bus
// listens 10000 up.
const firstPort, endPort = 20000, 30000

// listenFree listens on a port of 127.0.0.1 that nobody else listens on. Until the claim is closed,
// no other user of this package gets that port, in whatever process, also while nobody listens
// there: a server that is down, or a proxy that refuses, finds it free when it comes back. The
// claim is the UDP port of that number.
func listenFree() (listener net.Listener, claim io.Closer, err error) {
	for range 1000 {
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(firstPort+rand.IntN(endPort-firstPort)))
		claim, err := net.ListenPacket("udp", addr)
		if err != nil {
			continue
		}
		listener, err := net.Listen("tcp", addr)
		if err == nil {
			return listener, claim, nil
		}
		claim.Close()
	}
	return nil, nil, fmt.Errorf("no free port of 127.0.0.1 found between %d and %d", firstPort, endPort)
}

// freePort returns an address of 127.0.0.1 that nobody listens on at the moment, and the claim to it.
func freePort() (addr string, claim io.Closer, err error) {
	listener, claim, err := listenFree()
	if err != nil {
		return "", nil, err
	}
	return listener.Addr().String(), claim, listener.Close()
}
