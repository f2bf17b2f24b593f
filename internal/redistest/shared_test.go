package redistest

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

func TestServerEndsWithTheProcess(t *testing.T) {
	for name, end := range map[string]func(*exec.Cmd, io.Closer) error{
		"killed": func(c *exec.Cmd, _ io.Closer) error { return c.Process.Kill() },
		"exits":  func(_ *exec.Cmd, stdin io.Closer) error { return stdin.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			child, stdin, addr := startChild(t)
			must(t, connect(t, addr).Ping(t.Context()).Err())
			must(t, end(child, stdin))
			eventually(t, "the server's end", func() bool {
				conn, err := net.Dial("tcp", addr)
				if err == nil {
					conn.Close()
				}
				return errors.Is(err, syscall.ECONNREFUSED)
			})
		})
	}
}

// startChild starts this test program as a child process. The child runs a server with the returned address.
func startChild(t *testing.T) (child *exec.Cmd, stdin io.Closer, addr string) {
	t.Helper()
	child = exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childVariable+"=1")
	child.Stderr = os.Stderr
	stdin = expect.Result(child.StdinPipe()).Value(t)
	stdout := expect.Result(child.StdoutPipe()).Value(t)
	must(t, child.Start())
	t.Cleanup(func() {
		child.Process.Kill()
		child.Wait()
	})
	line := expect.Result(bufio.NewReader(stdout).ReadString('\n')).Value(t)
	return child, stdin, strings.TrimSpace(line)
}
