package worker

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/tdf-framework/tdf/worker/secrets"
)

// What others say of a round, rsync of its files' names, is masked; what is a reason stays that reason.
func TestErrorsAreMasked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "env")
	must(t, os.WriteFile(path, []byte("TOKEN=hunter22\n"), 0o600))
	values, err := secrets.Load(path)
	must(t, err)
	d := &desk{secrets: values}
	if got := masked(d, errors.New("rsync: hunter22.txt: no space")); got.Error() != "rsync: ***.txt: no space" {
		t.Error(got)
	}
	for _, reason := range []error{nil, errTimedOut, errStopping} {
		if got := masked(d, reason); !errors.Is(got, reason) {
			t.Errorf("%v became %v", reason, got)
		}
	}
}
