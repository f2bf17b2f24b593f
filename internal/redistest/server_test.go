package redistest

import (
	"net"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/expect"
)

func TestRestart(t *testing.T) {
	tests := map[string]struct {
		options []Option
		end     func(*Server)
		again   func(*Server)
		want    string // the key's value after the restart; before the restart, the value was 1
	}{
		"killed, nothing on disk":  {nil, (*Server).Kill, (*Server).Restart, ""},
		"stopped, nothing on disk": {nil, (*Server).Stop, (*Server).Restart, ""},
		"killed, aof":              {[]Option{AOF("always")}, (*Server).Kill, (*Server).Restart, "1"},
		"stopped, aof":             {[]Option{AOF("no")}, (*Server).Stop, (*Server).Restart, "1"},
		"running, aof":             {[]Option{AOF("always")}, func(*Server) {}, (*Server).Restart, "1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := Start(t, test.options...)
			must(t, connect(t, s.Addr).Set(t.Context(), "key", "1", 0).Err())
			test.end(s)
			test.again(s)
			got, err := connect(t, s.Addr).Get(t.Context(), "key").Result()
			if err != nil {
				expect.FailsWith(t, err, redis.Nil, test.want)
			}
			expect.Equal(t, got, test.want)
		})
	}
}

func TestKillAndStop(t *testing.T) {
	for name, end := range map[string]func(*Server){"Kill": (*Server).Kill, "Stop": (*Server).Stop} {
		t.Run(name, func(t *testing.T) {
			s := Start(t)
			end(s)
			end(s) // the second call does nothing
			expect.Result(net.Dial("tcp", s.Addr)).FailsWith(t, syscall.ECONNREFUSED)
		})
	}
}

func TestErrorOfStartHasTheLog(t *testing.T) {
	_, err := start(t.TempDir(), []Option{Args("--maxmemory", "much")})
	expect.Fails(t, err, "'maxmemory \"much\"'")
}

// The port of a stopped server stays claimed.
func TestPortsAreClaimed(t *testing.T) {
	s := Start(t)
	s.Kill()
	expect.Result(net.ListenPacket("udp", s.Addr)).FailsWith(t, syscall.EADDRINUSE, "the claim is free")
	s.Restart()
}

// A server of a command stops when the command calls stop.
func TestCommand(t *testing.T) {
	addr, stop, err := Command(t.TempDir(), Args("--hash-max-listpack-value", "77"))
	must(t, err)
	c := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
	defer c.Close()
	expect.Equal(t, c.ConfigGet(t.Context(), "hash-max-listpack-value").Val()["hash-max-listpack-value"], "77")
	stop()
	stop()
	expect.Fails(t, c.Ping(t.Context()).Err(), "", "the server answers after stop")
}
