package local

import (
	"bufio"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/tdf-framework/tdf/internal/redistest"
)

// With this in its environment, the test's program is a process that serves a Redis and waits for its end.
const servesIn = "LOCAL_TEST_SERVES_IN"

func TestMain(m *testing.M) {
	if dir := os.Getenv(servesIn); dir != "" {
		serveForEver(dir)
	}
	goleak.VerifyTestMain(m, redistest.Goroutines())
}

func serveForEver(dir string) {
	at, err := freeAddr()
	if err == nil {
		_, err = Serve(at, dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("serving")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	os.Exit(0)
}
