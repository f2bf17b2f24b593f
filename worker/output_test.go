package worker

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf"
)

func TestReadOutput(t *testing.T) {
	note := func(n int, path string) string {
		return fmt.Sprintf("[%d bytes are left out here; all of it is on worker w1 in %s]\n", n, path)
	}
	for name, c := range map[string]struct {
		text string
		most int64
		want func(path string) string
	}{
		"empty":          {"", 10, func(string) string { return "" }},
		"short":          {"0123456789", 10, func(string) string { return "0123456789" }},
		"long":           {"0123456789a", 10, func(p string) string { return "01234\n" + note(1, p) + "6789a" }},
		"odd":            {"0123456789", 3, func(p string) string { return "01\n" + note(7, p) + "9" }},
		"one byte":       {"0123456789", 1, func(p string) string { return "0\n" + note(9, p) }},
		"at a line":      {"012\n456\n89", 8, func(p string) string { return "012\n" + note(2, p) + "56\n89"[1:] }},
		"binary, no end": {"\x00\xff\xfe\n\r", 5, func(string) string { return "\x00\xff\xfe\n\r" }},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := createOutput(filepath.Join(t.TempDir(), "a", "b", "f"))
			must(t, err)
			defer f.Close()
			_, err = f.WriteString(c.text)
			must(t, err)
			got, err := readOutput(f, c.most, "w1")
			if want := c.want(f.Name()); err != nil || got != want {
				t.Errorf("got %q, %v, want %q", got, err, want)
			}
		})
	}
}

// What is printed does not have to fit anywhere but on the disk.
func TestReadOutputOfAnEndlessFile(t *testing.T) {
	f, err := createOutput(filepath.Join(t.TempDir(), "f"))
	must(t, err)
	defer f.Close()
	must(t, f.Truncate(1<<40))
	got, err := readOutput(f, 1000, "w1")
	if err != nil || len(got) > 1500 || !strings.Contains(got, fmt.Sprint(1<<40-1000)) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestCreateOutputMakesANewFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	other := filepath.Join(t.TempDir(), "other")
	must(t, os.WriteFile(other, []byte("kept"), 0o644))
	must(t, os.Symlink(other, path))
	for range 2 {
		f, err := createOutput(path)
		must(t, err)
		_, err = f.WriteString("new")
		must(t, err)
		f.Close()
	}
	for name, want := range map[string]string{path: "new", other: "kept"} {
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestOutputFilesStay(t *testing.T) {
	w := newWorld(t)
	w.cfg.MaxOutput = 4
	w.cfg.TaskErrorFilename = w.path("elsewhere", "$program", "$worker.$taskId.$round")
	w.script("p", "#!/bin/sh\nprintf 0123456789; printf err >&2\n")
	id := w.open("")
	w.runOnce(w.worker())
	for name, want := range map[string]string{w.path("p/results/w1-1-0.out"): "0123456789", w.path("elsewhere/p/w1.1.0"): "err"} {
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	r := w.task(id).Current()
	if want := "01\n[6 bytes are left out here; all of it is on worker w1 in " + w.path("p/results/w1-1-0.out") + "]\n89"; r.Output != want || r.Error != "err" {
		t.Errorf("got %q, %q", r.Output, r.Error)
	}
}

func TestOutputFileThatCannotBeMade(t *testing.T) {
	w := newWorld(t)
	w.script("p", good)
	must(t, os.WriteFile(w.path("p", "results"), nil, 0o644))
	id := w.open("")
	w.runOnce(w.worker())
	got := w.finished(id)
	if got.State != tdf.Failed || !strings.Contains(got.LastError(), "task_output_filename): mkdir "+w.path("p", "results")+": not a directory") {
		t.Errorf("%s: %q", got.State, got.LastError())
	}
}

func TestMostOutput(t *testing.T) {
	w := &Worker{}
	if got := w.mostOutput(); got != MaxOutput {
		t.Errorf("0 means %d", got)
	}
	w.cfg.MaxOutput = 7
	if got := w.mostOutput(); got != 7 {
		t.Errorf("7 means %d", got)
	}
}
