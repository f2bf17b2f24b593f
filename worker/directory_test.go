package worker

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/updates"
)

const secret = "8c1f-0a7e"

// directories are programs that misuse the round's directory. Each comes with the expected end of its task.
var directories = map[string]fault{
	"result.json is no JSON": {
		script: `echo out; printf '{"a": }' >$TDF_DIR/result.json; echo s >$TDF_DIR/scratch/s`,
		want:   ended{tdf.Failed, "out\n", "result.json: it is not JSON: invalid character '}' looking for beginning of value (byte 7) (run.sh ended with 0)", ""},
		check: func(t *testing.T, r *runningWorker, one *task.Task) {
			expect.Equal(t, one.Current().Result, "", "the result")
			absent(t, r.path("p/results/w1-2-0.scratch"))
		},
	},
	"updates of 10 MB": {
		script: "yes " + strings.Repeat("x", 999) + " | head -c 10000000 >$TDF_DIR/updates",
		want:   ended{tdf.Succeeded, "", "", "0"},
		log:    "updates: more than 1048576 bytes; the rest is left out",
		check: func(t *testing.T, r *runningWorker, one *task.Task) {
			updates := expect.Result(r.store.Updates.After(t.Context(), one.ID, updates.Update{}, 100_000)).Value(t)
			const whole = 1 << 20 / 1000
			for i, u := range updates {
				expect.MustEqual(t, u.Number, i+1)
				if i < whole {
					expect.MustEqual(t, u.Line, strings.Repeat("x", 999))
				}
			}
			expect.MustLen(t, updates, whole+1)
			expect.Equal(t, updates[whole].Line, "[updates end here: more than 1048576 bytes]")
		},
	},
	"directory made unreadable": {
		script: "mkdir -p $TDF_DIR/scratch/a/b; chmod 0 $TDF_DIR/scratch/a/b $TDF_DIR/scratch/a $TDF_DIR/scratch; echo out",
		want:   ended{tdf.Succeeded, "out\n", "", "0"},
	},
	"secrets are masked": {
		script: `echo "out: $TOKEN"; echo "err: $TOKEN" >&2; echo "0.5 at $TOKEN" >$TDF_DIR/progress; echo "did $TOKEN" >$TDF_DIR/updates
echo "$TOKEN" >$TDF_DIR/result.json`,
		set: secretsOf(0o600),
		want: ended{
			tdf.Failed, "out: ***\n",
			"err: ***\nresult.json: it is not JSON: invalid character 'c' after top-level value (byte 2) (run.sh ended with 0)", "",
		},
		log: `error="result.json: it is not JSON`,
		check: func(t *testing.T, r *runningWorker, one *task.Task) {
			updates := expect.Result(r.store.Updates.After(t.Context(), one.ID, updates.Update{}, 10)).Value(t)
			expect.MustLen(t, updates, 1)
			expect.Equal(t, updates[0].Line, "did ***")
			expect.Equal(t, one.Current().Progress.Text, "at ***")
			fileHas(t, r.path("p/results/w1-2-0.out"), "out: "+secret+"\n")
			if info, err := os.Stat(r.path("p/results/w1-2-0.out")); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("the output file: %v, %v", info.Mode(), err)
			}
		},
	},
	"secrets that others can read": {
		script: "echo out",
		set:    secretsOf(0o644),
		want:   ended{State: tdf.Open},
		log:    "released: this host cannot run it",
		check: func(t *testing.T, r *runningWorker, one *task.Task) {
			has(t, one.Log, "p.env: its mode is 0644, so users other than its owner can use it (chmod 600 "+r.path("p.env")+")")
		},
	},
}

func secretsOf(mode os.FileMode) func(w *world) {
	return func(w *world) {
		w.keepOutputs()
		w.cfg.EnvFile = "$program.env"
		must(w, os.WriteFile(w.path("p.env"), fmt.Appendf(nil, "TOKEN=%s\n", secret), mode))
		must(w, os.Chmod(w.path("p.env"), mode))
	}
}

// A worker that starts removes the directories that a killed worker of the same name left. It follows no links in
// them.
func TestStartRemovesLeftDirectories(t *testing.T) {
	w := newWorld(t)
	kept := w.TempDir()
	must(t, os.WriteFile(kept+"/f", nil, 0o644))
	rounds := w.worker().rounds()
	must(t, os.MkdirAll(rounds+"/3/scratch", 0o700))
	must(t, os.Symlink(kept, rounds+"/3/scratch/0"))
	r := w.work(fault{})
	r.nothingRemains(r.before)
	fileHas(t, kept+"/f", "")
	r.stop()
}

// Each round gets a clean directory, whatever the previous round did with its directory.
func TestEachRoundHasACleanDirectory(t *testing.T) {
	r := newWorld(t).work(fault{})
	r.script("look", "#!/bin/sh\ncd \"$TDF_DIR\" && find . -printf '%p %y %m\\n' | sort\n")
	for name, script := range map[string]string{
		"nothing":           "",
		"a file":            "echo x >$TDF_DIR/x",
		"deep in scratch":   "mkdir -p $TDF_DIR/scratch/a/b; echo x >$TDF_DIR/scratch/a/b/x",
		"a checkpoint":      "echo x >$TDF_DIR/checkpoint",
		"scratch gone":      "rmdir $TDF_DIR/scratch",
		"scratch a link":    "rmdir $TDF_DIR/scratch; ln -s / $TDF_DIR/scratch",
		"another mode":      "chmod 777 $TDF_DIR",
		"modes within":      "chmod 1777 $TDF_DIR/scratch",
		"another in place":  "mv $TDF_DIR $TDF_DIR.old; mkdir -m 700 $TDF_DIR; mkdir $TDF_DIR/scratch; rm -r $TDF_DIR.old",
		"all gone":          "rm -r $TDF_DIR",
		"above it all gone": "rm -r $TDF_DIR/..",
	} {
		t.Run(name, func(t *testing.T) {
			r.script("p", noting+script+"\n")
			r.over(r.open(""))
			one := r.over(r.open("", func(d *task.Properties) { d.Program = "look" }))
			want := ". d 700\n./scratch d 755\n"
			expect.Equal(t, one.LastOutput(), want)
			expect.Equal(t, one.State, tdf.Succeeded)
			r.nothingRemains(r.before)
		})
	}
	r.stop()
}
