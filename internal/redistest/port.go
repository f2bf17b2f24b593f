package redistest

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
)

// The ports lie below the range of outgoing connections (from 32768 on Linux), which could take the port of a stopped
// server. The bus of a cluster uses ports 10000 higher.
const firstPort, endPort = 20000, 30000

// listenFree listens on a free port of 127.0.0.1. Until the claim is closed, no other process with this package gets
// the port. So a stopped server or a refusing proxy gets its port back. The claim is the UDP port of the same number.
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

// freePort returns a free address of 127.0.0.1, and its claim.
func freePort() (addr string, claim io.Closer, err error) {
	listener, claim, err := listenFree()
	if err != nil {
		return "", nil, err
	}
	return listener.Addr().String(), claim, listener.Close()
}
