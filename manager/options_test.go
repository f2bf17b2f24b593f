package manager_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
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

// In a cluster, a namespace needs a hash tag.
func TestNamespaceOfACluster(t *testing.T) {
	t.Parallel()
	o := manager.Options{Namespace: "}p"}
	expect.NoError(t, expect.Result(manager.New(o)).Value(t).Close())
	o.Redis.Cluster = []string{"127.0.0.1:1"}
	expect.Result(manager.New(o)).Fails(t, "make manager: (no file): [tdf] namespace: }p begins with }")
}

// A text of a struct shows all of its fields, also those beside an embedded type with a text of its own.
func TestTextsOfLimitsAndPauses(t *testing.T) {
	t.Parallel()
	expect.Equal(t, fmt.Sprint(manager.KeyLimit{"k", tdf.Limit{AtMost: 4}, 3, 7}), "k: at_most=4, 3 running, 7 waiting")
	since := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	expect.Equal(t, fmt.Sprint(manager.Pause{tdf.Pausable{Group: "g"}, "me", since}), "group=g, by me since 2030-01-01 00:00:00 +0000 UTC")
}
