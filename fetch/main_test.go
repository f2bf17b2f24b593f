package fetch

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// childEnv makes of the test binary another process that fetches: "DIR\nPROGRAM\nSOURCE".
const childEnv = "TDF_TEST_FETCH_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		os.Exit(child(dir, os.Args[1], os.Args[2]))
	}
	goleak.VerifyTestMain(m)
}

// child fetches with 8 goroutines at once, and says beforehand that it is about to.
func child(dir, program, source string) int {
	f := &Fetcher{Dir: dir, RetryPause: time.Millisecond}
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
