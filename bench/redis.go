package main

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

// A redisServer is one of our own, on loopback, that keeps nothing.
type redisServer struct {
	port   int
	dir    string
	cmd    *exec.Cmd
	client *redis.Client
}

func startRedis() (*redisServer, error) {
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
	r := &redisServer{port: port, dir: dir}
	r.cmd = exec.Command("redis-server", "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--dir", dir)
	if err := r.cmd.Start(); err != nil {
		return nil, err
	}
	r.client = redis.NewClient(&redis.Options{Addr: r.addr(), Protocol: 2, DialerRetries: 100})
	if err := r.client.Ping(context.Background()).Err(); err != nil {
		r.stop()
		return nil, fmt.Errorf("redis-server does not answer: %w", err)
	}
	return r, nil
}

func (r *redisServer) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(r.port)) }

func (r *redisServer) stop() {
	r.client.Close()
	r.cmd.Process.Kill()
	r.cmd.Wait()
	os.RemoveAll(r.dir)
}

// usage is what Redis has done so far: seconds of CPU, and commands (those inside scripts, too).
type usage struct{ cpu, commands float64 }

func (u usage) minus(v usage) usage { return usage{u.cpu - v.cpu, u.commands - v.commands} }
func (u usage) plus(v usage) usage  { return usage{u.cpu + v.cpu, u.commands + v.commands} }

func (r *redisServer) usage(ctx context.Context) (usage, error) {
	time.Sleep(150 * time.Millisecond) // Redis updates its figures ten times a second
	info, err := r.client.Info(ctx, "cpu", "commandstats").Result()
	if err != nil {
		return usage{}, err
	}
	var u usage
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch {
		case name == "used_cpu_sys" || name == "used_cpu_user":
			n, _ := strconv.ParseFloat(value, 64)
			u.cpu += n
		case strings.HasPrefix(name, "cmdstat_"):
			calls, _, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
			n, _ := strconv.ParseFloat(calls, 64)
			u.commands += n
		}
	}
	return u, nil
}
