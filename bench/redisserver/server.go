// Package redisserver runs a Redis for measurements, and says what it did.
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

// A Server is one of our own, on loopback, that keeps nothing.
type Server struct {
	Port   int
	dir    string
	cmd    *exec.Cmd
	client *redis.Client
}

// Start starts one; Stop ends it.
func Start() (*Server, error) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		return nil, errors.New("redis-server is needed: make setup installs it")
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
	r.cmd = exec.Command("redis-server", "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--dir", dir)
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

// Addr is where it listens.
func (r *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(r.Port)) }

// Stop ends it, and removes what it left.
func (r *Server) Stop() {
	r.client.Close()
	r.cmd.Process.Kill()
	r.cmd.Wait()
	os.RemoveAll(r.dir)
}

// Usage is what Redis has done so far: seconds of CPU, and commands (those inside scripts, too).
type Usage struct{ CPU, Commands float64 }

// Minus is what was done between v and u.
func (u Usage) Minus(v Usage) Usage { return Usage{u.CPU - v.CPU, u.Commands - v.Commands} }

// Plus is the sum of both.
func (u Usage) Plus(v Usage) Usage { return Usage{u.CPU + v.CPU, u.Commands + v.Commands} }

// Usage reads what it has done so far.
func (r *Server) Usage(ctx context.Context) (Usage, error) {
	time.Sleep(150 * time.Millisecond) // Redis updates its figures ten times a second
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
