package worker

import (
	"os"
	"syscall"
	"testing"

	"github.com/tdf-framework/tdf/internal/leaktest"
)

func TestMain(m *testing.M) {
	os.Setenv("LC_ALL", "C") // some tests look at what the programs of the system say
	syscall.Umask(0o022)     // some tests look at modes
	os.Exit(leaktest.M{M: m}.Run())
}
