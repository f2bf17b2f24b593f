package process

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// The test binary is also the programs that shells cannot be.
func TestMain(m *testing.M) {
	if name := os.Getenv("TDF_TEST_PROGRAM"); name != "" {
		programs[name](os.Args[1:])
		os.Exit(0)
	}
	keepOwn()
	goleak.VerifyTestMain(m)
}
