package main

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed bullmq.js
var bullmqScript []byte

// The versions of BullMQ and of its Redis client.
var bullmqPackages = []string{"bullmq@6.7.0", "ioredis@5.11.1"}

func startBullMQ(t *trial, role string, j job) *child {
	script := filepath.Join(t.dir, "bullmq.js")
	check(os.WriteFile(script, bullmqScript, 0o644))
	j.Role = role
	return t.start(j, []string{"NODE_PATH=" + t.installBullMQ()}, "node", script)
}

// installBullMQ installs BullMQ below the user's cache directory, unless it is already there. It returns the directory
// of the modules. npm writes its list of what is installed at the end.
func (t *trial) installBullMQ() (modules string) {
	dir := filepath.Join(must(os.UserCacheDir()), "tdf-bench", strings.Join(bullmqPackages, "-"))
	modules = filepath.Join(dir, "node_modules")
	_, err := os.Stat(filepath.Join(modules, ".package-lock.json"))
	if err == nil {
		return modules
	}
	check(os.MkdirAll(dir, 0o755))
	args := []string{"install", "--prefix", dir, "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"}
	npm := exec.CommandContext(t.ctx, "npm", append(args, bullmqPackages...)...)
	npm.Stdout, npm.Stderr = os.Stderr, os.Stderr
	if err = npm.Run(); err != nil {
		check(fmt.Errorf("install BullMQ (scripts/setup installs node and npm): %w", err))
	}
	return modules
}
