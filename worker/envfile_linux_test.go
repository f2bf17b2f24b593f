package worker

import (
	"errors"
	"os"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
)

// If the user of the programs owns the directory of an env_file, this user still cannot make root read another file.
func TestEnvFileFollowsNoLinkOfAProgram(t *testing.T) {
	w := newWorld(t)
	w.asNobody()
	w.cfg.EnvFile = "$program/secrets.env"
	w.script("p", "#!/bin/sh\necho token ${#TOKEN}\n")
	secret := w.TempDir() + "/secrets.env"
	must(t, os.WriteFile(secret, []byte("TOKEN=hunter22\n"), 0o600))
	must(t, errors.Join(os.Symlink(secret, w.path("p/secrets.env")), os.Chown(w.path("p"), nobody, nobody)))
	id := w.lastChance(w.open(""))
	w.runOnce(w.worker())
	const want = "p/secrets.env: it is a symbolic link that another user made, or could have made"
	got := w.finished(id)
	expect.Equal(t, got.State, tdf.Failed)
	expect.Contains(t, got.LastError(), want)
}
