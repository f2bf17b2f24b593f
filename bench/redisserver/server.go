// Package redisserver runs a redis-server for measurements, and measures how much CPU it uses.
package redisserver

import (
	"context"
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
	*redis.Client
	Port int
	stop func()
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
	r := &Server{Client: redis.NewClient(&redis.Options{Addr: addr, Protocol: 2})}
	r.stop = func() { stop(); os.RemoveAll(dir) }
	r.Port, err = strconv.Atoi(port)
	return r, err
}

// Stop ends the server, and removes its directory.
func (r *Server) Stop() {
	r.Close()
	r.stop()
}

// Usage holds what Redis used since its start, and the bytes that it has allocated.
type Usage struct {
	CPU      float64 // s
	Commands float64 // including those that scripts call
	Memory   float64 // bytes
}

// Usage waits until Redis has updated its numbers, and returns them.
func (r *Server) Usage(ctx context.Context) (u Usage, err error) {
	time.Sleep(150 * time.Millisecond) // Redis updates INFO ten times a second
	info, err := r.Info(ctx, "cpu", "commandstats", "memory").Result()
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		n, _ := strconv.ParseFloat(value, 64)
		switch {
		case name == "used_cpu_sys" || name == "used_cpu_user":
			u.CPU += n
		case name == "used_memory":
			u.Memory = n
		case strings.HasPrefix(name, "cmdstat_"):
			fmt.Sscanf(value, "calls=%f", &n)
			u.Commands += n
		}
	}
	return u, err
}
