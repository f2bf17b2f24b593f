package main

import (
	"errors"
	"net"
	"os/exec"
	"testing"
)

// Somebody who listens where the daemon was to listen is not taken for it.
func TestThePortOfTheDaemonIsTaken(t *testing.T) {
	path, err := exec.LookPath("rsync")
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	accepting := make(chan struct{})
	go func() {
		defer close(accepting)
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			c.Close()
		}
	}()
	defer func() {
		l.Close()
		<-accepting
	}()
	d, err := startDaemon(path, t.TempDir(), l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer d.stop()
	if err := d.await(t.Context(), l.Addr().String()); !errors.Is(err, errEnded) {
		t.Errorf("got %v", err)
	}
}
