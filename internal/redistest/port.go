package redistest

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
)

// This package uses the ports from firstPort to endPort. They are below the ports of outgoing connections, which begin
// at 32768 on Linux. So no connection can get the port of a stopped server. Each port plus 10000 is also a valid port,
// because a node of a Redis Cluster also uses that second port.
const firstPort, endPort = 20000, 30000

// listenFree listens on a free port of 127.0.0.1. Until the returned claim is closed, this package gives the port to no
// other server or proxy. So a stopped server or a refusing proxy can use its port again. The claim is the UDP port with
// the same number.
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
