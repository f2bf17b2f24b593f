package local

import (
	"bufio"
	"fmt"
	"os"
	"testing"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/leaktest"
)

// servesIn is an environment variable. If it contains a directory, the test program serves a Redis with its data in this directory.
const servesIn = "LOCAL_TEST_SERVES_IN"

func TestMain(m *testing.M) {
	if dir := os.Getenv(servesIn); dir != "" {
		serveForEver(dir)
	}
	os.Exit(leaktest.M{M: m}.Run())
}

func serveForEver(dir string) {
	_, _, err := atFree(func(at config.Redis) (*Redis, error) { return Serve(at, dir) })
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("serving")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	os.Exit(0)
}
