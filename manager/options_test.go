package manager_test

import (
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/manager"
)

// A variable of the environment may belong to a key that only the file sets: New gets the file's values as options, and does not
// know the file.
func TestEnvironmentThatBelongsToAFile(t *testing.T) {
	t.Setenv("TDF_CFG_HTTP_LISTEN", ":7379")
	t.Setenv("TDF_CFG_REDIS_TLS_CA", "ca.pem")
	expect.NoError(t, expect.Result(manager.New(manager.Options{Namespace: "p"})).Value(t).Close())
	t.Setenv("TDF_CFG_HTTP_LISTEN", "nonsense")
	expect.Result(manager.New(manager.Options{Namespace: "p"})).Fails(t, "TDF_CFG_HTTP_LISTEN")
}
