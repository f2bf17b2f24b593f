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

// archive packs run.sh, so that Redis can store it.
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

// scriptSource returns the source of run.sh for workers on this machine. If path is "", the file beside this source
// code is used.
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
		return "", fmt.Errorf("find run.sh: %w; set its path with -program", err)
	}
	return "rsync:" + path, nil
}
