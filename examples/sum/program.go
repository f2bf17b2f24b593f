package main

import (
	"archive/tar"
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

//go:embed run.sh
var script []byte

// archive packs run.sh, to be kept in Redis.
func archive() ([]byte, error) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	if err := w.WriteHeader(&tar.Header{Name: "run.sh", Mode: 0o755, Size: int64(len(script))}); err != nil {
		return nil, err
	}
	if _, err := w.Write(script); err != nil {
		return nil, err
	}
	err := w.Close()
	return buf.Bytes(), err
}

// scriptSource is the source for workers on this machine: run.sh at the path given, or beside
// this file.
func scriptSource(path string) (string, error) {
	if path == "" {
		_, file, _, _ := runtime.Caller(0)
		path = filepath.Join(filepath.Dir(file), "run.sh")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("the program that workers are to run: %w; say with -program where run.sh is", err)
	}
	return "rsync:" + path, nil
}
