package process

import (
	"os"
	"testing"

	"github.com/tdf-framework/tdf/internal/leaktest"
)

// Some tests need a program that no shell script can replace. They start the test binary as this program.
func TestMain(m *testing.M) {
	if name := os.Getenv("TDF_TEST_PROGRAM"); name != "" {
		programs[name](os.Args[1:])
		os.Exit(0)
	}
	keepOwn()
	os.Exit(leaktest.M{M: m}.Run())
}
