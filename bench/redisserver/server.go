// Package redisserver runs a redis-server for measurements, and measures how much CPU it uses.
package redisserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Shipped contains the arguments of redis-server for the settings of the Redis that TDF ships, apart from persistence.
var Shipped = []string{"--hash-max-listpack-value", "1024"}

// A Server is a redis-server that listens on loopback and saves nothing to disk.
type Server struct {
	Port   int
	dir    string
	cmd    *exec.Cmd
	client *redis.Client
}

// Start starts a redis-server on a free port, with further arguments for redis-server.
func Start(settings ...string) (*Server, error) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		return nil, errors.New("redis-server is not installed; run make setup")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	dir, err := os.MkdirTemp("", "tdf-bench")
	if err != nil {
		return nil, err
	}
	r := &Server{Port: port, dir: dir}
	args := []string{"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--dir", dir}
	r.cmd = exec.Command("redis-server", append(args, settings...)...)
	if err := r.cmd.Start(); err != nil {
		return nil, err
	}
	r.client = redis.NewClient(&redis.Options{Addr: r.Addr(), Protocol: 2, DialerRetries: 100})
	if err := r.client.Ping(context.Background()).Err(); err != nil {
		r.Stop()
		return nil, fmt.Errorf("redis-server does not answer: %w", err)
	}
	return r, nil
}

// Addr returns the server's host:port.
func (r *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(r.Port)) }

// Stop ends the server, and removes its directory.
func (r *Server) Stop() {
	r.client.Close()
	r.cmd.Process.Kill()
	r.cmd.Wait()
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

// Usage holds the CPU time in seconds that Redis used, and the number of commands that it ran. The number includes the
// commands that scripts call.
type Usage struct{ CPU, Commands float64 }

// Minus returns u minus v.
func (u Usage) Minus(v Usage) Usage { return Usage{u.CPU - v.CPU, u.Commands - v.Commands} }

// Usage returns the server's usage since its start. It waits a moment for fresh numbers.
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
			calls, _, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
			n, _ := strconv.ParseFloat(calls, 64)
			u.Commands += n
		}
	}
	return u, nil
}
