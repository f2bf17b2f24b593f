// Package redisserver runs a redis-server for measurements, and measures how much CPU it uses.
package redisserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// Shipped contains the arguments that give a redis-server the settings of the Redis that TDF ships. Only the settings
// for persistence are missing.
var Shipped = shipped()

func shipped() (settings []string) {
	for _, t := range conn.Tunings() {
		settings = append(settings, "--"+t.Name, strconv.FormatInt(t.Value, 10))
	}
	return settings
}

// A Server is a redis-server that listens on loopback and saves nothing to disk. It ends with this process, even if
// this process is killed.
type Server struct {
	Port   int
	dir    string
	addr   string
	stop   func()
	client *redis.Client
}

// Start starts a redis-server on a free port, with additional arguments for redis-server.
func Start(settings ...string) (*Server, error) {
	dir, err := os.MkdirTemp("", "tdf-bench")
	if err != nil {
		return nil, err
	}
	addr, stop, err := redistest.Command(dir, redistest.Args(settings...))
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	_, port, _ := net.SplitHostPort(addr)
	r := &Server{dir: dir, addr: addr, stop: stop, client: redis.NewClient(&redis.Options{Addr: addr, Protocol: 2})}
	r.Port, err = strconv.Atoi(port)
	return r, err
}

// Addr returns the server's host:port.
func (r *Server) Addr() string { return r.addr }

// Stop ends the server, and removes its directory.
func (r *Server) Stop() {
	r.client.Close()
	r.stop()
	os.RemoveAll(r.dir)
}

// Flush deletes all data.
func (r *Server) Flush(ctx context.Context) error { return r.client.FlushAll(ctx).Err() }

// Memory returns the number of bytes that Redis has allocated.
func (r *Server) Memory(ctx context.Context) (float64, error) {
	info, err := r.client.Info(ctx, "memory").Result()
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(info) {
		if bytes, ok := strings.CutPrefix(strings.TrimSpace(line), "used_memory:"); ok {
			return strconv.ParseFloat(bytes, 64)
		}
	}
	return 0, errors.New("INFO of Redis has no used_memory")
}

// Usage holds the CPU time in seconds that Redis used, the number of commands that it ran, and the time in seconds in
// which scripts ran. The number and the time include the commands that scripts call.
type Usage struct{ CPU, Commands, Scripts float64 }

// Minus returns u minus v.
func (u Usage) Minus(v Usage) Usage {
	return Usage{u.CPU - v.CPU, u.Commands - v.Commands, u.Scripts - v.Scripts}
}

// Usage returns the server's usage since its start. First, it waits until Redis has updated the numbers.
func (r *Server) Usage(ctx context.Context) (Usage, error) {
	time.Sleep(150 * time.Millisecond) // Redis updates INFO ten times a second
	info, err := r.client.Info(ctx, "cpu", "commandstats").Result()
	if err != nil {
		return Usage{}, err
	}
	var u Usage
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch {
		case name == "used_cpu_sys" || name == "used_cpu_user":
			n, _ := strconv.ParseFloat(value, 64)
			u.CPU += n
		case strings.HasPrefix(name, "cmdstat_"):
			var calls, micros float64
			fmt.Sscanf(value, "calls=%f,usec=%f", &calls, &micros)
			u.Commands += calls
			if name == "cmdstat_evalsha" {
				u.Scripts = micros / 1e6
			}
		}
	}
	return u, nil
}
