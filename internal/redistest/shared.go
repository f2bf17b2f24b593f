package redistest

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// shared starts the server that all tests of this process share. The server ends with the process.
var shared = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "redistest-*")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir) // after its start, the server does not need the directory
	s, err := start(dir, nil)
	if err != nil {
		return "", err
	}
	return s.Addr, nil
})

// Shared returns the address of a server that all tests of the process share. The server has no password and no memory
// limit. Each test needs its own [Namespace], and must not call FLUSHALL or CONFIG SET. A test that needs other
// settings uses [Start].
func Shared(t testing.TB) string {
	t.Helper()
	addr, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// databases is the number of databases of each server. An empty database needs little memory.
const databases = 2048

var (
	numbersMu sync.Mutex
	numbers   = map[string]int{}
)

// Database returns the number of a database that belongs to the test and its subtests alone. So a command that looks at
// all keys of a database, as KEYS and SCAN do, does not meet the keys of tests that run at the same time.
func Database(t testing.TB) int {
	t.Helper()
	test, _, _ := strings.Cut(t.Name(), "/")
	numbersMu.Lock()
	defer numbersMu.Unlock()
	if numbers[test] == 0 {
		numbers[test] = len(numbers) + 1
	}
	if numbers[test] >= databases {
		t.Fatalf("more than %d tests want a database", databases)
	}
	return numbers[test]
}

var (
	namespaces    atomic.Int64
	invalidInName = regexp.MustCompile(`[^A-Za-z0-9]+`)
)

// Namespace returns a name that is unique in the process. The name begins with the test's name, and contains only
// letters, digits and dashes.
func Namespace(t testing.TB) string {
	name := invalidInName.ReplaceAllString(t.Name(), "-")
	return fmt.Sprintf("%.40s-%d", name, namespaces.Add(1))
}
