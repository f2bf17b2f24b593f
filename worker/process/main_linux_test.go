package process

import (
	"os"
	"testing"

	"github.com/tdf-framework/tdf/internal/leaktest"
)

// The test binary also serves as a program, where a shell script would not do.
func TestMain(m *testing.M) {
	if name := os.Getenv("TDF_TEST_PROGRAM"); name != "" {
		programs[name](os.Args[1:])
		os.Exit(0)
	}
	keepOwn()
	os.Exit(leaktest.M{M: m}.Run())
}
