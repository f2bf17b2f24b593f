package admin_test

import (
	"os"
	"testing"

	"github.com/tdf-framework/tdf/internal/leaktest"
	"github.com/tdf-framework/tdf/internal/testspace"
)

func TestMain(m *testing.M) {
	os.Exit(leaktest.M{M: m}.Run())
}

var (
	redisConfig = testspace.Config
	newManager  = testspace.Manager
	define      = testspace.Define
	connect     = testspace.Connect
	apply       = testspace.Apply
	client      = testspace.Client
	read        = testspace.Read
)
