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

var (
	eventually = expect.Eventually
	must       = expect.NoError
)

// childVariable is an environment variable. If the variable is set, this test program starts a server, prints the
// address of the server, and exits at the end of its stdin.
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

// connect returns a client of Redis without retries.
func connect(t *testing.T, addr string) *redis.Client {
	t.Helper()
	return Client(t, redis.Options{Addr: addr, MaxRetries: -1, ContextTimeoutEnabled: true})
}
