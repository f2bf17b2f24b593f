package redistest

import (
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
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
		"aof lost":                 {[]Option{AOF("always")}, (*Server).Kill, (*Server).RestartEmpty, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := Start(t, test.options...)
			must(t, connect(t, s.Addr).Set(t.Context(), "key", "1", 0).Err())
			test.end(s)
			test.again(s)
			got, err := connect(t, s.Addr).Get(t.Context(), "key").Result()
			if err != nil && !errors.Is(err, redis.Nil) || got != test.want {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
}

func TestKillAndStop(t *testing.T) {
	for name, end := range map[string]func(*Server){"Kill": (*Server).Kill, "Stop": (*Server).Stop} {
		t.Run(name, func(t *testing.T) {
			s := Start(t)
			end(s)
			end(s) // the second call does nothing
			if _, err := net.Dial("tcp", s.Addr); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("got %v, want a refused connection", err)
			}
		})
	}
}

func TestArgs(t *testing.T) {
	s := Start(t, Args("--requirepass", "se cret#"), Args("--maxmemory", "3mb"))
	if err := connect(t, s.Addr).Ping(t.Context()).Err(); err == nil || !strings.Contains(err.Error(), "NOAUTH") {
		t.Errorf("without password: got %v, want NOAUTH", err)
	}
	client := redis.NewClient(&redis.Options{Addr: s.Addr, Password: "se cret#"})
	defer client.Close()
	got, err := client.ConfigGet(t.Context(), "maxmemory").Result()
	if err != nil || got["maxmemory"] != "3145728" {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestErrorOfStartHasTheLog(t *testing.T) {
	_, err := start(t.TempDir(), []Option{Args("--maxmemory", "much")})
	if err == nil || !strings.Contains(err.Error(), "'maxmemory \"much\"'") {
		t.Errorf("got %v, want the server's log", err)
	}
}

func TestStartInMissingDirectory(t *testing.T) {
	if _, err := start(t.TempDir()+"/none", nil); err == nil {
		t.Error("the server started in a missing directory")
	}
}

func TestLog(t *testing.T) {
	s := Start(t)
	s.Stop()
	if !strings.Contains(s.Log(), "Received SIGTERM") {
		t.Errorf("got %q", s.Log())
	}
}

// The port of a stopped server stays claimed.
func TestPortsAreClaimed(t *testing.T) {
	s := Start(t)
	s.Kill()
	if l, err := net.ListenPacket("udp", s.Addr); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("the claim is free: %v, %v", l, err)
	}
	s.Restart()
}

// A server of a command stops when the command calls stop.
func TestCommand(t *testing.T) {
	addr, stop, err := Command(t.TempDir(), Args("--hash-max-listpack-value", "77"))
	must(t, err)
	c := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
	defer c.Close()
	if got := c.ConfigGet(t.Context(), "hash-max-listpack-value").Val(); got["hash-max-listpack-value"] != "77" {
		t.Errorf("got %v", got)
	}
	stop()
	stop()
	if err := c.Ping(t.Context()).Err(); err == nil {
		t.Error("the server answers after stop")
	}
}
