package fetch

import (
	"bufio"
	"bytes"
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

func TestManyProgramsAtOnce(t *testing.T) {
	url := serve(t, []byte(goodScript))
	f := newFetcher(t)
	var wg sync.WaitGroup
	for _, program := range strings.Fields("a b c d e f g h") {
		wg.Go(func() {
			_, err := f.Fetch(t.Context(), program, url+"/run.sh")
			expect.True(t, err == nil, err)
		})
	}
	wg.Wait()
	checkNoStaging(t, f.Dir)
}

// fetchingProcess starts a process that fetches a program, and waits until the fetch has begun.
func fetchingProcess(t *testing.T, dir, source string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "prog", source)
	cmd.Env = append(os.Environ(), childEnv+"="+dir)
	cmd.Stderr = os.Stderr
	out := expect.Result(cmd.StdoutPipe()).Value(t)
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	r := bufio.NewReader(out)
	expect.MustEqual(t, expect.Result(r.ReadString('\n')).Value(t), "started\n", "the process printed")
	return cmd, r
}

func TestManyProcessesFetchOnce(t *testing.T) {
	var requests atomic.Int32
	allStarted := make(chan struct{})
	url := serveFunc(t, func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		<-allStarted
		_, _ = w.Write([]byte(goodScript))
	})
	dir := t.TempDir()
	var printed []*bufio.Reader
	for range 3 {
		_, r := fetchingProcess(t, dir, url+"/run.sh")
		printed = append(printed, r)
	}
	close(allStarted)
	var all []string
	for _, r := range printed {
		line := expect.Result(r.ReadString('\n')).Value(t)
		all = append(all, strings.TrimSpace(line))
	}
	text := strings.Join(all, ",")
	expect.Equal(t, strings.Count(text, "fetched 1"), 1)
	expect.Equal(t, strings.Count(text, "fetched 0"), 2)
	expect.Equal(t, requests.Load(), 1)
}

func TestKilledWhileDownloading(t *testing.T) {
	url, began := blocking(t)
	dir := t.TempDir()
	cmd, _ := fetchingProcess(t, dir, url+"/run.sh")
	<-began
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()
	expect.Result(os.Stat(filepath.Join(dir, "prog"))).Fails(t, "", "the program's directory exists")
	expect.True(t, len(snapshot(t, dir)) != 0, "the killed process left no files to sweep, so this test proves nothing")
	fetchWorks(t, &Fetcher{Dir: dir}, serve(t, []byte(goodScript))+"/run.sh")
}

// A killed process leaves processes of setup.sh behind. Until they have ended, no other process may change the program.
func TestSetupOfAKilledProcessKeepsTheLock(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/wait", nil)
	cmd, _ := fetchingProcess(t, dir, serve(t, packTar(t, setup("(while [ -e ../wait ]; do sleep 0.02; done) & kill -9 $PPID"), runItem))+"/x.tar")
	_ = cmd.Wait()
	lock := func() *os.File {
		return expect.Result(tryLock(filepath.Join(dir, locksDir, "prog"))).Value(t)
	}
	if l := lock(); l != nil {
		t.Error("the program is not locked while a process of setup.sh runs")
		l.Close()
	}
	must(t, os.Remove(dir+"/wait"))
	fetchWorks(t, &Fetcher{Dir: dir}, serve(t, []byte(goodScript))+"/run.sh")
}

// In this test, setup.sh kills the process that fetches the program. The program is then partly installed.
func TestKilledWhileInstalling(t *testing.T) {
	for _, existed := range []bool{false, true} {
		dir, good := t.TempDir(), atomic.Bool{}
		url := serveFunc(t, func(w http.ResponseWriter, _ *http.Request) {
			items := []item{{name: "data/a", body: "bad"}, {name: "only/bad", body: "x"}, setup("mkdir made; echo '#!/bin/sh' >run.sh; kill -9 $PPID"), runItem}
			if good.Load() {
				items = []item{{name: "data/a", body: "good"}, runItem}
			}
			_, _ = w.Write(packTar(t, items...))
		})
		if existed {
			write(t, dir+"/prog/results/1.out", []byte("kept"))
			write(t, dir+"/prog/data/own", []byte("kept"))
		}
		cmd, _ := fetchingProcess(t, dir, url+"/x.tar")
		_ = cmd.Wait()
		f := &Fetcher{Dir: dir}
		_, ok, err := f.Ready("prog", url+"/x.tar")
		expect.True(t, !ok, "an incomplete program is ready", ok, err)
		expect.NoError(t, err)
		if got := snapshot(t, dir); got["prog/only/bad"] == "" || got["prog/made"] == "" {
			t.Errorf("the killed process left nothing to undo: %v", got)
		}
		good.Store(true)
		p := fetchWorks(t, f, url+"/x.tar")
		got := snapshot(t, p.Dir)
		expect.Equal(t, got["data/a"], `-rw-r--r-- "good"`)
		expect.Equal(t, got["only"], "")
		expect.Equal(t, got["made"], "")
		expect.Equal(t, got["setup.sh"], "")
		if existed {
			expect.Equal(t, got["results/1.out"], `-rw-r--r-- "kept"`)
			expect.Equal(t, got["data/own"], `-rw-r--r-- "kept"`)
		}
	}
}

func TestCancelWaitForLock(t *testing.T) {
	f := newFetcher(t)
	must(t, os.MkdirAll(filepath.Join(f.Dir, locksDir), 0o755))
	l, err := tryLock(filepath.Join(f.Dir, locksDir, "prog"))
	must(t, err)
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = f.Fetch(ctx, "prog", "rsync:/x/run.sh")
	checkFailed(t, err, "fetching rsync:/x/run.sh: wait: context canceled")
	expect.FailsWith(t, err, context.Canceled)
}

// After a lock's file was removed, the lock has no effect. The next process locks a new file of the same name.
func TestLockOnRemovedFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	old := expect.Result(tryLock(name)).Value(t)
	defer old.Close()
	expect.MustEqual(t, expect.Result(tryLock(name)).Value(t), nil)
	must(t, os.Remove(name))
	l := expect.Result(tryLock(name)).Value(t)
	defer l.Close()
	expect.True(t, sameFile(l, name), "the lock is on another file")
	expect.True(t, !sameFile(old, name), "the lock is on another file")
}

func TestTail(t *testing.T) {
	var out tail
	_, _ = out.Write(bytes.Repeat([]byte("long "), 10_000))
	_, _ = out.Write([]byte("\n\none\r\n\x1b[1mtwo\xff\n" + strings.Repeat("é", 300)))
	got := out.lines()
	expect.True(t, strings.HasSuffix(got, "; one; [1mtwo\uFFFD; "+strings.Repeat("é", lineRunes/2)+"…"+strings.Repeat("é", lineRunes/2)), got)
	expect.Compare(t, len(out.buf), "<=", tailBytes)
}
