package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
)

const nobody = 65534

// asNobody makes the worker run programs as the user nobody, and lets that user enter the working directory.
func (w *world) asNobody() {
	w.Helper()
	if os.Geteuid() != 0 {
		w.Skip("needs root: only root can run programs as another user")
	}
	w.cfg.User = "nobody"
	w.openToAll(w.cfg.Directory)
}

// openToAll lets every user enter a directory and the directories above it.
func (w *world) openToAll(dir string) {
	w.Helper()
	for ; dir != "/"; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err == nil && info.Mode().Perm()&0o005 != 0o005 {
			must(w, os.Chmod(dir, 0o755))
		}
	}
}

// If a program makes a link in the path of the output files, root makes no output files behind that link.
func TestOutputFilesFollowNoLinkOfAProgram(t *testing.T) {
	for name, user := range map[string]string{"another user's program": "nobody", "the worker's own": ""} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.asNobody()
			w.keepOutputs()
			w.cfg.User = user
			w.script("p", good)
			secret := t.TempDir()
			must(t, os.Symlink(secret, w.path("p/results")))
			must(t, errors.Join(os.Chown(w.path("p"), nobody, nobody), os.Lchown(w.path("p/results"), nobody, nobody)))
			w.open("")
			w.runOnce(w.worker())
			expect.Len(t, expect.Result(os.ReadDir(secret)).Value(t), 0, "root's files behind the link")
			w.logged("p/results: it is a symbolic link that another user made")
		})
	}
}

func TestOutputFilesInADirectoryOfAProgram(t *testing.T) {
	w := newWorld(t)
	w.asNobody()
	w.keepOutputs()
	w.script("p", good)
	must(t, os.Mkdir(w.path("p/results"), 0o755))
	must(t, os.Chown(w.path("p/results"), nobody, nobody))
	w.open("")
	w.runOnce(w.worker())
	w.logged("p/results belongs to user 65534")
}

// A worker does not start if programs could replace its directories.
func TestStartRefusesADirectoryThatProgramsControl(t *testing.T) {
	for name, belongs := range map[string]string{"directory": ".", "own directory": ".tdf"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.asNobody()
			must(t, os.MkdirAll(w.path(belongs), 0o755))
			must(t, os.Chown(w.path(belongs), nobody, nobody))
			_, err := w.worker().RunOnce(t.Context())
			var wrong *config.Error
			expect.MustTrue(t, errors.As(err, &wrong), err)
			expect.Equal(t, wrong.Key, "directory")
			expect.Contains(t, wrong.Problem, "belongs to user 65534")
		})
	}
}

// With a user for each slot, no round can read files of another running round.
func TestUserPerSlot(t *testing.T) {
	w := newWorld(t)
	w.asNobody()
	w.cfg.User = "%n" // users by number, because user numbers work without accounts
	w.cfg.Concurrency = 2
	p := w.pipe()
	w.openToAll(filepath.Dir(p.path))
	must(t, os.Chmod(p.path, 0o666))
	w.script("p", `#!/bin/sh
id -u
if [ $1 = first ]; then
	echo secret >$TDF_DIR/result.json; chmod 644 $TDF_DIR/result.json
	echo >`+p.path+`
	read line <`+p.path+`
	exit
fi
for d in ../.tdf/.rounds/*/*; do cat $d/result.json && echo read; done
for d in /proc/[0-9]*; do grep -q TDF_TASK_ID=1 $d/environ && echo "read $d"; done
exit 0
`)
	first := w.open("first", func(d *task.Properties) { d.FailOn = tdf.FailOnExit })
	worker := w.worker()
	stopped, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- worker.Run(stopped) }()
	p.begun()
	second := w.open("second", func(d *task.Properties) { d.FailOn = tdf.FailOnExit })
	expect.Equal(t, w.finished(second).LastOutput(), "2\n", "the second round")
	p.release()
	expect.Equal(t, w.finished(first).LastOutput(), "1\n", "the first round")
	stop()
	must(t, <-done)
}

// If the user of a slot is missing, the worker returns an error before it runs anything.
func TestUserPerSlotThatIsMissing(t *testing.T) {
	w := newWorld(t)
	w.cfg.User, w.cfg.Concurrency = "tdf-none%n", 3
	_, err := w.worker().RunOnce(t.Context())
	var wrong *config.Error
	expect.MustTrue(t, errors.As(err, &wrong), err)
	expect.Equal(t, wrong.Key, "user")
	expect.Contains(t, wrong.Problem, `slot 1 of 3: user "tdf-none1": there is no such user on this machine`)
}

// With another user, a copy belongs to that user, but a file that the user cannot read stays the worker's.
func TestCopyForAnotherUser(t *testing.T) {
	w := newWorld(t)
	w.asNobody()
	w.cfg.Concurrency = 2
	w.script("p", "#!/bin/sh\nstat -c '%u %n' . run.sh lib secret; cat secret 2>/dev/null; echo >>lib/data && echo written\n")
	must(t, errors.Join(
		os.Mkdir(w.path("p", "lib"), 0o755), os.WriteFile(w.path("p", "lib", "data"), nil, 0o644), os.WriteFile(w.path("p", "secret"), []byte("secret"), 0o600),
	))
	id := w.open("")
	w.runOnce(w.worker())
	expect.Equal(t, w.finished(id).LastOutput(), fmt.Sprintf("%[1]d .\n%[1]d run.sh\n%[1]d lib\n0 secret\nwritten\n", nobody))
}

// A round that brings back files runs in a copy that belongs to the program's user, and so do the files that it gets.
func TestFetchFilesOfAnotherUser(t *testing.T) {
	w := newWorld(t)
	w.asNobody()
	w.script("p", "#!/bin/sh\necho changed >>data && mkdir out && cp data out/ && rm d/old && echo >>old\n")
	must(t, os.WriteFile(w.path("p/old"), []byte("old\n"), 0o644))
	blobs := w.keepBlobs()
	id := w.open("", fetching("out"), needing(w.storeBlob(blobs, "data\n", "data"), w.storeBlob(blobs, "new", "d/old")))
	w.runOnce(w.worker())
	expect.Equal(t, w.finished(id).LastError(), "")
	expect.Equal(t, w.broughtBack(id), "out/data=data\nchanged\n")

	root := expect.Result(os.OpenRoot(w.path("p"))).Value(t)
	defer root.Close()
	expect.Fails(t, chownDirectory(root, "old", nobody, nobody), "not a directory") // as if it had taken the directory's name
	expect.Equal(t, expect.Result(os.Stat(w.path("p/old"))).Value(t).Sys().(*syscall.Stat_t).Uid, 0)
}

// A task cannot name a file as its source that only root may read.
func TestSourceThatOnlyRootMayRead(t *testing.T) {
	w := newWorld(t)
	w.asNobody()
	archive := w.archive("run.sh", good, "secret", "root's")
	must(t, os.Chmod(strings.TrimPrefix(archive, "rsync:"), 0o600))
	id := w.lastChance(w.open("", from(archive)))
	w.runOnce(w.worker())
	got := w.finished(id)
	expect.Equal(t, got.State, tdf.Failed)
	expect.Contains(t, got.LastError(), "Permission denied")
	absent(t, w.path("p/secret"))
}
