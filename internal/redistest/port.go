package redistest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports below the range that systems hand out by themselves (from 32768 on Linux): there,
// while a server is down, a client's own connection could take its port. A cluster's bus
// listens 10000 up.
const firstPort, endPort = 20000, 30000

// listenFree listens on a port of 127.0.0.1 that nobody else listens on.
func listenFree() (net.Listener, error) {
	for range 1000 {
		port := strconv.Itoa(firstPort + rand.IntN(endPort-firstPort))
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
		if err == nil {
			return l, nil
		}
	}
	return nil, fmt.Errorf("no free port of 127.0.0.1 found between %d and %d", firstPort, endPort)
}

// freePort returns a port of 127.0.0.1 that nobody listens on at the moment.
func freePort() (string, error) {
	l, err := listenFree()
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}
