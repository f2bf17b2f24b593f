package admin_test

import (
	"os"
	"testing"

	"github.com/tdf-framework/tdf/internal/leaktest"
)

func TestMain(m *testing.M) {
	os.Exit(leaktest.M{M: m}.Run())
}
