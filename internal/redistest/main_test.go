package redistest

import (
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/leaktest"
)

var eventually = expect.Eventually

// childVariable makes this test program start a server, print its address, and exit at the end of its standard input.
const childVariable = "REDISTEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		childMain()
	}
	os.Exit(leaktest.M{M: m}.Run())
}

func childMain() {
	addr, err := shared()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(addr)
	io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// connect returns a client without retries and without timeouts.
func connect(t *testing.T, addr string) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ReadTimeout: -1, ContextTimeoutEnabled: true})
	t.Cleanup(func() { client.Close() })
	return client
}
