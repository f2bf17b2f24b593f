package cmd_test

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
)

// holding is a program that runs until a file exists, if its input says so.
const holding = `#!/bin/sh
echo "$1 on $TDF_WORKER" | tee made
[ "$1" = hold ] || exit 0
echo $$ >>%[1]s/pids
while [ ! -e %[1]s/go ]; do sleep 0.1; done
`

// A worker on a machine without access to Redis works over HTTP. It is killed and started again, its token is replaced,
// and the server is away for a time. No task and no result is lost.
func TestWorkerOverHTTP(t *testing.T) {
	s := newSite(t)
	cert, key := certificate(t)
	listen := "127.0.0.1:" + freePort(t)
	file := s.config("[http]\nlisten=%s\ntls_cert=%s\ntls_key=%s", listen, cert, key)
	serve := func() *process {
		p := start(t, "tdf-server", "s", file)
		p.logs("url=https://" + listen)
		return p
	}
	server := serve()
	tokenFile := filepath.Join(t.TempDir(), "token")
	token := func() string {
		add := exec.CommandContext(t.Context(), built(t, "tdf"), "--config", file, "token", "add", "lab", "--role", "worker")
		add.Env = environment()
		text := expect.Result(add.Output()).Value(t)
		must(t, os.WriteFile(tokenFile+".new", text, 0o600))
		must(t, os.Rename(tokenFile+".new", tokenFile))
		return strings.TrimSpace(string(text))
	}
	tokens := []string{token()}
	cfg := write(t, "[tdf]\nnamespace=%s\n[worker]\ndirectory=%s\nconcurrency=4\nlease=2\napi=https://%s\napi_token_file=%s\napi_ca=%s\n", s.ns, s.dir, listen, tokenFile, cert)
	work := func() *process {
		p := start(t, "tdf-worker", "w", cfg)
		p.logs("msg=working")
		return p
	}
	worker := work()

	source := expect.Result(s.store.Programs.PutProgram(t.Context(), archive(t, fmt.Sprintf(holding, s.dir)))).Value(t)
	var all []task.Properties
	for _, input := range []string{"hold", "a", "b", "c", "d", "e", "f"} {
		d := task.Defaults("stored", source, input)
		d.MaxLosses = 1000
		if input == "a" {
			d.Fetch = []string{"ma*"}
		}
		all = append(all, d)
	}
	ids := expect.Result(s.store.Open(t.Context(), "test", all...)).Value(t)
	eventually(t, "the short tasks have succeeded", func() bool { return s.count(task.Succeeded) == 6 })
	expect.Equal(t, s.task(ids[1]).Current().Files.Count, 1)
	worker.kill()
	before := len(s.pids())

	worker = work()
	eventually(t, "the task runs again", func() bool { return len(s.pids()) > before })
	untoken := exec.CommandContext(t.Context(), built(t, "tdf"), "--config", file, "token", "rm", "lab")
	untoken.Env = environment()
	must(t, untoken.Run())
	worker.logs("the API cannot be used, trying again")
	tokens = append(tokens, token())
	worker.logs("the API answers again")

	server.signal(syscall.SIGTERM)
	server.exits(0, "msg=stopped")
	must(t, os.WriteFile(s.path("go"), nil, 0o600))
	eventually(t, "the program has ended", func() bool { return !s.alive(s.pids()[len(s.pids())-1]) })
	serve()
	for i, one := range s.succeeded(ids) {
		expect.Equal(t, one.LastOutput(), all[i].Input+" on w\n")
		expect.Equal(t, one.Current().Worker, "lab/w")
	}
	worker.signal(syscall.SIGTERM)
	worker.exits(0, "msg=stopped")
	for _, text := range tokens {
		expect.True(t, !strings.Contains(worker.stderr.String(), text), "the log has the token")
	}
	s.nothingRemains()
}

// certificate returns the files of a certificate and its key, and the fingerprint of the certificate.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	pair := s.TLS.Certificates[0]
	file := func(kind string, der []byte) string {
		path := filepath.Join(t.TempDir(), "pem")
		must(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		return path
	}
	secret := expect.Result(x509.MarshalPKCS8PrivateKey(pair.PrivateKey)).Value(t)
	return file("CERTIFICATE", pair.Certificate[0]), file("PRIVATE KEY", secret)
}

// archive returns a tar with one run.sh.
func archive(t *testing.T, script string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	must(t, w.WriteHeader(&tar.Header{Name: "run.sh", Mode: 0o755, Size: int64(len(script))}))
	expect.Result(w.Write([]byte(script))).OK(t)
	must(t, w.Close())
	return b.Bytes()
}
