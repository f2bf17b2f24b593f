package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

// The versions of BullMQ and of its Redis client.
const (
	bullmqVersion  = "6.7.0"
	ioredisVersion = "5.11.1"
)

// installOnce installs BullMQ below the user's cache directory, unless it is already there. It returns the directory of
// the modules. Only the first call tries to install BullMQ. Later calls return the same result or error as the first
// call.
func installOnce(ctx context.Context) (modules string, err error) {
	installation.once.Do(func() { installation.modules, installation.err = installBullMQ(ctx) })
	return installation.modules, installation.err
}

var installation struct {
	once    sync.Once
	modules string
	err     error
}

func installBullMQ(ctx context.Context) (string, error) {
	for _, name := range []string{"node", "npm"} {
		if _, err := exec.LookPath(name); err != nil {
			return "", fmt.Errorf("%w; run scripts/setup node npm", err)
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "tdf-bench", "bullmq-"+bullmqVersion+"-ioredis-"+ioredisVersion)
	modules := filepath.Join(dir, "node_modules")
	if _, err := os.Stat(filepath.Join(modules, "bullmq")); err == nil {
		return modules, nil
	}
	return modules, install(ctx, dir)
}

// install installs BullMQ into a temporary directory, and then renames this directory to dir. If the installation is
// interrupted, dir does not exist.
func install(ctx context.Context, dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	temporary, err := os.MkdirTemp(filepath.Dir(dir), "install")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	npm := exec.CommandContext(ctx, "npm", "install", "--prefix", temporary, "--no-audit", "--no-fund",
		"--ignore-scripts", "--loglevel=error",
		"bullmq@"+bullmqVersion, "ioredis@"+ioredisVersion)
	npm.Stdout, npm.Stderr = os.Stderr, os.Stderr
	if err := npm.Run(); err != nil {
		return fmt.Errorf("install BullMQ: npm install: %w", err)
	}
	if err := os.Rename(temporary, dir); err != nil && !os.IsExist(err) {
		return fmt.Errorf("install BullMQ: %w", err)
	}
	return nil
}
