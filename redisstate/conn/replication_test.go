package conn

import (
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// A replica that is being synchronized is connected, but confirms nothing.
func TestReplication(t *testing.T) {
	r := (&Conn{Addr: "a:1"}).Replication(ParseInfo("connected_slaves:2\r\nmaster_repl_offset:30\r\n" +
		"slave0:ip=::1,port=5,state=online,offset=10,lag=1\r\nslave1:ip=b,port=6,state=send_bulk,offset=0,lag=2\r\n"))
	expect.Equal(t, r.Replicas, []Replica{{"[::1]:5", "online", 1, 20}, {"b:6", "send_bulk", 2, 30}})
	expect.Equal(t, r.Online(), 1)
	expect.Equal(t, r.Lag(), 2)
}
