package worker

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
)

// archive packs files into a tar file, and returns the source for it.
func (w *world) archive(files ...string) string {
	w.Helper()
	var buf bytes.Buffer
	pack := tar.NewWriter(&buf)
	for i := 0; i < len(files); i += 2 {
		must(w, pack.WriteHeader(&tar.Header{Name: files[i], Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(files[i+1]))}))
		expect.Result(pack.Write([]byte(files[i+1]))).OK(w)
	}
	must(w, pack.Close())
	path := filepath.Join(w.TempDir(), "p.tar")
	must(w, os.WriteFile(path, buf.Bytes(), 0o644))
	return "rsync:" + path
}

func from(source string) func(*task.Properties) {
	return func(d *task.Properties) { d.Source = source }
}

const good = "#!/bin/sh\necho good\n"

func TestFetchedPrograms(t *testing.T) {
	for name, c := range map[string]struct {
		files        []string
		output, fail string
	}{
		"good":          {[]string{"run.sh", good}, "good\n", ""},
		"with setup.sh": {[]string{"run.sh", "cat made", "setup.sh", "#!/bin/sh\necho made >made\n"}, "made\n", ""},
		"no run.sh":     {[]string{"main.sh", good}, "", "unpack: no run.sh at the top level of the archive"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			id := w.lastChance(w.open("", from(w.archive(c.files...))))
			w.runOnce(w.worker())
			r := w.finished(id).Current()
			expect.Equal(t, r.Output, c.output)
			expect.Contains(t, r.Error, c.fail)
			expect.Equal(t, r.Error == "", c.fail == "")
			expect.Equal(t, r.Exit == "0", c.fail == "")
			expect.Equal(t, r.Started > 0, c.fail == "")
		})
	}
}

// A round's result contains the checksum of the program that ran.
func TestProgramSHA256(t *testing.T) {
	w := newWorld(t)
	source := w.archive("run.sh", good)
	data := expect.Result(os.ReadFile(strings.TrimPrefix(source, "rsync:"))).Value(t)
	sum := sha256.Sum256(data)
	worker := w.worker()
	for range 2 {
		id := w.open("", from(source))
		w.runOnce(worker)
		expect.Equal(t, w.task(id).Current().ProgramSHA256, hex.EncodeToString(sum[:]))
	}
	w.script("q", good)
	id := w.open("", func(d *task.Properties) { d.Program = "q" })
	w.runOnce(worker)
	expect.Equal(t, w.task(id).Current().ProgramSHA256, "", "a program that was not fetched has the checksum")
}

// Programs of two sources may have one name. Neither gets the files of the other, and only the source that the file of
// secrets names gets these, even if another source has the name first. A command can have the name, too.
func TestAnotherSourceUnderAKnownName(t *testing.T) {
	const script = "echo $0 $TDF_TASK_ID ${KEY:+has}"
	w := newWorld(t)
	w.cfg.EnvFile, w.cfg.Concurrency = "$program.env", 2
	worker := w.worker()
	own := w.archive("run.sh", "#!/bin/sh\n# own\n"+script)
	hostile := w.archive("run.sh", "#!/bin/sh\n# hostile\n"+script)
	for _, c := range []struct{ source, file, more string }{
		{hostile, "", ""},
		{own, "", ""},
		{"exec:", "", ""},
		{hostile, "TDF_SOURCE=" + own, ""},
		{own, "TDF_SOURCE=rsync:/x\nTDF_SOURCE=" + own, " has"},
		{"exec:", "TDF_SOURCE=" + own, ""},
		{hostile, "TDF_SOURCE=" + own + "x", ""},
		{"exec:", "TDF_SOURCE=exec:", " has"},
	} {
		must(t, os.WriteFile(w.path("p.env"), []byte("KEY=secret\n"+c.file), 0o600))
		id := w.open("sh -c '"+script+"' ./run.sh", from(c.source))
		w.runOnce(worker)
		expect.Equal(t, w.finished(id).LastOutput(), fmt.Sprintf("./run.sh %d%s\n", id, c.more), c.source, c.file, w.finished(id).LastError())
	}
}

func TestProgramFromRedis(t *testing.T) {
	w := newWorld(t)
	data := expect.Result(os.ReadFile(strings.TrimPrefix(w.archive("run.sh", good), "rsync:"))).Value(t)
	source := expect.Result(w.store.Programs.PutProgram(t.Context(), data)).Value(t)
	worker := w.worker()
	id := w.open("", from(source))
	w.runOnce(worker)
	got := w.finished(id)
	expect.Equal(t, got.State, tdf.Succeeded)
	expect.Equal(t, got.LastOutput(), "good\n")
	missing := w.withoutProgram(w.open("", func(d *task.Properties) { d.Program = "q" }))
	w.runOnce(worker)
	expect.Contains(t, w.finished(missing).LastError(), "nothing is stored in this namespace", "the task")
}

// If programs run as another user, root runs no file that came from a source.
func TestSetupIsRefusedForAnotherUser(t *testing.T) {
	w := newWorld(t)
	w.asNobody()
	id := w.lastChance(w.open("", from(w.archive("run.sh", good, "setup.sh", "#!/bin/sh\ntouch made\n"))))
	w.runOnce(w.worker())
	got := w.finished(id)
	expect.Equal(t, got.State, tdf.Failed)
	expect.Contains(t, got.LastError(), "setup.sh: it would run as root")
	_, err := os.Stat(w.path("p", "made"))
	expect.True(t, os.IsNotExist(err), "setup.sh ran", err)
}
