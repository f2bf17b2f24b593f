package fetch

import (
	"context"
	"fmt"
	"os"
	"sync"
	"syscall"
	"testing"

	"github.com/tdf-framework/tdf/internal/leaktest"
)

// childEnv is an environment variable that contains a directory. If it is set, the test binary fetches a program into
// this directory. The program and its source are the arguments.
const childEnv = "TDF_TEST_FETCH_CHILD"

// TestCompressions are those of package archive. Tests of this package cannot import it.
var TestCompressions []Compression

func TestMain(m *testing.M) {
	syscall.Umask(0o022) // some tests check the modes of files
	if dir := os.Getenv(childEnv); dir != "" {
		os.Exit(child(dir, os.Args[1], os.Args[2]))
	}
	os.Exit(leaktest.M{M: m}.Run())
}

// child prints "started", calls Fetch in 8 goroutines, and prints how many of these calls fetched the program.
func child(dir, program, source string) int {
	f := &Fetcher{Dir: dir, RetryPause: 1, Compressions: TestCompressions}
	fmt.Println("started")
	var wg sync.WaitGroup
	errs := make([]error, 8)
	fetched := make([]bool, 8)
	for i := range errs {
		wg.Go(func() {
			p, err := f.Fetch(context.Background(), program, source)
			errs[i], fetched[i] = err, p.Fetched
		})
	}
	wg.Wait()
	n := 0
	for i, err := range errs {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		if fetched[i] {
			n++
		}
	}
	fmt.Println("fetched", n)
	return 0
}
