package redistest

import (
	"fmt"
	"os"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"
)

// shared starts the one server that all tests of this process use. It ends with the process.
var shared = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "redistest-*")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir) // it needs a directory to start in, and keeps nothing there
	s, err := start(dir, nil)
	if err != nil {
		return "", err
	}
	return s.Addr, nil
})

// Shared returns the address of a server without limits and passwords that all tests of the
// process use side by side: each in a [Namespace] of its own, none with a FLUSHALL or a
// CONFIG SET. A test that needs more than that has [Start].
func Shared(t testing.TB) string {
	t.Helper()
	addr, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

var (
	namespaces atomic.Int64
	notInAName = regexp.MustCompile(`[^A-Za-z0-9]+`)
)

// Namespace returns a name that no other test of the process gets, made of letters, digits
// and dashes, and begun with the test's name.
func Namespace(t testing.TB) string {
	name := notInAName.ReplaceAllString(t.Name(), "-")
	return fmt.Sprintf("%.40s-%d", name, namespaces.Add(1))
}
