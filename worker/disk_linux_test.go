package worker

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
)

// Wherever a full disk makes a round fail, the error says that the disk is full.
func TestDiskFull(t *testing.T) {
	for name, f := range map[string]fault{
		"at the fetch": {
			script: "echo here",
			task:   func(d *task.Properties) { d.Program = "big" },
			want:   ended{State: tdf.Open},
			check: func(t *testing.T, r *runningWorker, one *task.Task) {
				has(t, one.Log, "released: fetching rsync:")
				has(t, one.Log, "no space left on device")
				absent(t, r.path("big"))
			},
		},
		"at the output": {
			script: "echo here",
			task:   func(d *task.Properties) { d.Program = "p" },
			want:   ended{State: tdf.Open},
			check: func(t *testing.T, r *runningWorker, one *task.Task) {
				has(t, one.Log, "released: the worker's disk is full: ")
				has(t, one.Log, "no space left on device")
				must(t, os.RemoveAll(r.path("filler")))
			},
		},
		"while it runs": {
			script: "echo begin; exec head -c 5000000 /dev/zero",
			want:   ended{State: tdf.Open},
			check: func(t *testing.T, r *runningWorker, one *task.Task) {
				has(t, one.Log, "released: the worker's disk is full, so output of the round may be cut: ")
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.smallDisk()
			switch name {
			case "at the fetch":
				source := w.archive("run.sh", good, "data", strings.Repeat("x", 5_000_000))
				named := f.task
				f.task = func(d *task.Properties) { named(d); d.Source = source }
			case "at the output":
				named := f.task
				f.task = func(d *task.Properties) { named(d); w.fill() }
				w.keepOutputs()
			}
			f.happen(t, w)
		})
	}
}

// smallDisk puts the working directory on a disk with 2 MB and 100 files.
func (w *world) smallDisk() {
	w.Helper()
	err := syscall.Mount("tmpfs", w.cfg.Directory, "tmpfs", 0, "size=2m,nr_inodes=100,mode=755")
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) {
		w.Skip("a small disk can be mounted by root only, and not in every container: ", err)
	}
	must(w, err)
	w.Cleanup(func() { must(w, syscall.Unmount(w.cfg.Directory, syscall.MNT_DETACH)) })
}

// fill creates files until the disk can hold no more.
func (w *world) fill() {
	w.Helper()
	must(w, os.Mkdir(w.path("filler"), 0o755))
	var err error
	for i := 0; err == nil; i++ {
		err = os.WriteFile(w.path("filler", strconv.Itoa(i)), nil, 0o644)
	}
	expect.MustTrue(w, errors.Is(err, syscall.ENOSPC), err)
}
