package apiserver

import (
	"net"

	"github.com/tdf-framework/tdf/internal/pool"
	"github.com/tdf-framework/tdf/internal/web"
)

// A sharing is a listener that closes connections beyond the share of their address.
type sharing struct {
	net.Listener
	connections *pool.Pool
}

func (s *sharing) Accept() (net.Conn, error) {
	for {
		c, err := s.Listener.Accept()
		if err != nil {
			return nil, err
		}
		leave, err := s.connections.Enter(web.AddressOf(c.RemoteAddr().String()))
		if err == nil {
			return &shared{c, leave}, nil
		}
		_ = c.Close() // the client has nothing to lose
	}
}

// A shared is a connection that is a part of the share of its address.
type shared struct {
	net.Conn
	leave func()
}

func (c *shared) Close() error {
	c.leave()
	return c.Conn.Close()
}
