package redistest

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
)

// All ports are below the ports of outgoing connections (from 32768 on Linux), so that no connection can get the port
// of a stopped server. Each port plus 10000 is also a valid port, as the bus of a Redis Cluster needs.
const firstPort, endPort = 20000, 30000

// listenFree listens on a free port of 127.0.0.1. Until the claim is closed, no other user of this package gets the
// port, so that a stopped server or a refusing proxy can use it again. The claim is the UDP port with the same number.
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

// freePort returns an address of 127.0.0.1 with a free port, and the claim of this port.
func freePort() (addr string, claim io.Closer, err error) {
	listener, claim, err := listenFree()
	if err != nil {
		return "", nil, err
	}
	return listener.Addr().String(), claim, listener.Close()
}
