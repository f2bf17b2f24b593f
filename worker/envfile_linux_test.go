package worker

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf"
)

// If the user of the programs owns the directory of an env_file, this user still cannot make root read another file.
func TestEnvFileFollowsNoLinkOfAProgram(t *testing.T) {
	for name, c := range map[string]struct {
		path, want string
		link       func(secret, path string) error
	}{
		"a link": {"p/secrets.env", "p/secrets.env: it is a symbolic link that another user made, or could have made", os.Symlink},
		"a linked directory": {"p/conf/secrets.env", "p/conf: it is a symbolic link that another user made, or could have made", func(secret, path string) error {
			return os.Symlink(strings.TrimSuffix(secret, "/secrets.env"), strings.TrimSuffix(path, "/secrets.env"))
		}},
		"a hard link": {"p/secrets.env", "p/secrets.env: the file has 2 names", os.Link},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.asNobody()
			w.cfg.EnvFile = strings.Replace(c.path, "p/", "$program/", 1)
			w.script("p", "#!/bin/sh\necho token ${#TOKEN}\n")
			secret := w.TempDir() + "/secrets.env"
			must(t, os.WriteFile(secret, []byte("TOKEN=hunter22\n"), 0o600))
			must(t, errors.Join(c.link(secret, w.path(c.path)), os.Chown(w.path("p"), nobody, nobody)))
			id := w.lastChance(w.open(""))
			w.runOnce(w.worker())
			if got := w.finished(id); got.State != tdf.Failed || !strings.Contains(got.LastError(), c.want) {
				t.Errorf("%s: %q, error %q; want %q", got.State, got.LastOutput(), got.LastError(), c.want)
			}
		})
	}
}

// Links that root made are followed, even below a directory of a program.
func TestEnvFileFollowsLinksOfRoot(t *testing.T) {
	w := newWorld(t)
	w.asNobody()
	w.cfg.EnvFile = "env/$program/secrets.env"
	w.script("p", "#!/bin/sh\necho token ${#TOKEN}\n")
	secret := w.TempDir()
	must(t, errors.Join(os.WriteFile(secret+"/secrets.env", []byte("TOKEN=hunter22\n"), 0o600), os.Mkdir(w.path("env"), 0o755)))
	must(t, os.Symlink(secret, w.path("env/p")))
	id := w.open("")
	w.runOnce(w.worker())
	if got := w.finished(id); got.State != tdf.Succeeded || got.LastOutput() != "token 8\n" {
		t.Errorf("%s: %q, error %q", got.State, got.LastOutput(), got.LastError())
	}
}
