package presence

import (
	"testing"

	"github.com/tdf-framework/tdf/internal/conntest"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/counts"
)

func of(c *conn.Conn) *Presence { return New(c, counts.New(c)) }

func onEach(t *testing.T, test func(t *testing.T, s *Presence)) {
	conntest.OnEach(t, func(t *testing.T, c *conn.Conn) { test(t, of(c)) })
}
