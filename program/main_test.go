package program_test

import (
	"os"
	"syscall"
	"testing"

	"github.com/tdf-framework/tdf/internal/leaktest"
)

func TestMain(m *testing.M) {
	syscall.Umask(0o022) // so that tests can compare modes of files
	os.Exit(leaktest.M{M: m}.Run())
}
