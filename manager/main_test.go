package manager_test

import (
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/tdf-framework/tdf/internal/redistest"
)

func TestMain(m *testing.M) {
	syscall.Umask(0o022) // modes of files are compared
	goleak.VerifyTestMain(m, redistest.Goroutines())
}
