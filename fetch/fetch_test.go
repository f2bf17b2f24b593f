package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/expect"
)

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// A fetch of each kind of source returns the same program, whether the source is a script or an archive with any
// ending.
func TestEverySource(t *testing.T) {
	dir := t.TempDir()
	address, url := daemon(t, dir), serveFunc(t, http.FileServer(http.Dir(dir)).ServeHTTP)
	for _, ending := range append([]string{"run.sh", "zip"}, tarEndings...) {
		file, data := "x."+ending, []byte(goodScript)
		if ending == "run.sh" {
			file = ending
		} else {
			data = pack(t, ending, item{name: "lib/data.txt", body: "x"}, item{name: "tool", body: "#!/bin/sh", mode: 0o700}, runItem)
		}
		write(t, filepath.Join(dir, file), data)
		sources := map[string]string{
			"path": "rsync:" + filepath.Join(dir, file), "daemon": "rsync:rsync://" + address + "/m/" + file, "http": url + "/" + file,
		}
		if ending != "run.sh" {
			sources["redis"] = "redis:" + sumOf(data)
		}
		for kind, source := range sources {
			t.Run(kind+" "+ending, func(t *testing.T) {
				f := newFetcher(t)
				f.Blob = blobs(map[string][]byte{sumOf(data): data})
				p := fetchWorks(t, f, source)
				expect.Equal(t, p.SHA256, sumOf(data))
				expect.Equal(t, p.Dir, filepath.Join(f.Dir, "prog"))
				got := snapshot(t, p.Dir)
				if ending != "run.sh" {
					expect.Equal(t, got["lib/data.txt"], `-rw-r--r-- "x"`)
					expect.Equal(t, got["tool"], `-rwxr-xr-x "#!/bin/sh"`)
				}
				out := expect.Result(exec.Command(filepath.Join(p.Dir, "run.sh")).Output()).Value(t)
				expect.Equal(t, string(out), "it runs\n")
			})
		}
	}
}

func TestContentDecidesNotTheEnding(t *testing.T) {
	f := newFetcher(t)
	fetchWorks(t, f, serve(t, pack(t, "zip", runItem))+"/x.tar.gz")
}

func TestChecksum(t *testing.T) {
	url := serve(t, []byte(goodScript)) + "/run.sh#sha256="
	f := newFetcher(t)
	other := strings.Repeat("0", 64)
	fetchFails(t, f, url+other, "download: the content has the SHA-256 "+sumOf([]byte(goodScript)), other)
	fetchWorks(t, f, url+strings.ToUpper(sumOf([]byte(goodScript))))
}

func TestFetchRefusesNames(t *testing.T) {
	f := newFetcher(t)
	for _, program := range []string{"", "..", ".tdf", "a/b", "-x", "a\x00b", strings.Repeat("x", 300)} {
		if _, err := f.Fetch(t.Context(), program, "rsync:/x/run.sh"); err == nil || !strings.HasPrefix(err.Error(), "program: ") {
			t.Errorf("program %q: %v", program, err)
		}
	}
	_, err := f.Fetch(t.Context(), "prog", "ftp://u:hush@h/run.sh")
	checkFailed(t, err, `source: source "ftp://***@h/run.sh": unknown scheme "ftp"`)
	if _, _, err := f.Ready("prog", "x"); err == nil {
		t.Error("Ready accepts an invalid source")
	}
	checkSame(t, f.Dir, map[string]string{})
}

// blocking starts an http server that sends the first bytes of a file, and then waits until the client disconnects.
// After the first bytes, the server sends a signal to the channel began.
func blocking(t *testing.T) (url string, began chan struct{}) {
	began = make(chan struct{}, 1)
	return serveFunc(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(goodScript))
		_ = http.NewResponseController(w).Flush()
		select {
		case began <- struct{}{}:
		default: // this request is a retry: the signal of an earlier request is still in the channel
		}
		<-r.Context().Done()
	}), began
}

func TestCancelDownload(t *testing.T) {
	url, began := blocking(t)
	f := newFetcher(t)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-began; cancel() }()
	_, err := f.Fetch(ctx, "prog", url+"/run.sh")
	checkFailed(t, err, "download: context canceled")
	expect.FailsWith(t, err, context.Canceled)
	checkSame(t, f.Dir, map[string]string{})
}

func TestFetchTimeout(t *testing.T) {
	url, _ := blocking(t)
	f := newFetcher(t)
	f.Timeout = 100 * time.Millisecond
	err := fetchFails(t, f, url+"/run.sh", "/run.sh: download: took longer than 0.1 s")
	e := new(Error)
	expect.FailsWith(t, err, context.DeadlineExceeded)
	expect.MustTrue(t, errors.As(err, &e), err)
	expect.Equal(t, e.Step, StepDownload)
}

func TestRunScriptFaults(t *testing.T) {
	tests := []struct {
		name  string
		items []item
		want  string
	}{
		{"none", []item{{name: "a", body: "x"}}, "no run.sh at the top level of the archive"},
		{"too deep", []item{{name: "proj/run.sh", body: goodScript}}, `run.sh is one level too deep, at "proj/run.sh"`},
		{"directory", []item{{name: "run.sh/x", body: "x"}}, "run.sh is a directory"},
		{"link", []item{{name: "a", body: goodScript}, {name: "run.sh", kind: '2', link: "a"}}, "run.sh is a symbolic link, not a regular file"},
		{"empty", []item{{name: "run.sh"}}, "run.sh is empty"},
	}
	for _, tt := range tests {
		for _, ending := range []string{"zip", "tar.gz"} {
			t.Run(tt.name+" "+ending, func(t *testing.T) {
				fetchFails(t, newFetcher(t), serve(t, pack(t, ending, tt.items...))+"/x."+ending, "x."+ending+": unpack: "+tt.want)
			})
		}
	}
}

func TestDiskFull(t *testing.T) {
	j, err := newFetcher(t).job("prog", "rsync:/x/run.sh")
	must(t, err)
	full := &fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}
	err = failed(t.Context(), j.src, StepUnpack, &entryError{"x", full})
	checkFailed(t, err, "fetching rsync:/x/run.sh: unpack: the worker's disk is full", "no space left")
}

func TestMissingWorkingDirectory(t *testing.T) {
	f := &Fetcher{Dir: filepath.Join(write(t, filepath.Join(t.TempDir(), "file"), nil), "x")}
	_, err := f.Fetch(t.Context(), "prog", "rsync:/x/run.sh")
	checkFailed(t, err, "fetching rsync:/x/run.sh: ")
	expect.Result(os.Stat(f.Dir)).Fails(t, "", "the working directory was made")
}
