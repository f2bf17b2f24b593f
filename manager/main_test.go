package manager_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/tdf-framework/tdf/internal/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, redistest.Goroutines()) }
