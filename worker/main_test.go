package worker

import (
	"os"
	"syscall"
	"testing"

	"github.com/tdf-framework/tdf/internal/leaktest"
)

func TestMain(m *testing.M) {
	os.Setenv("LC_ALL", "C") // some tests compare messages of system programs in English
	syscall.Umask(0o022)     // some tests compare modes of files
	os.Exit(leaktest.M{M: m}.Run())
}
