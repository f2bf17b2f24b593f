package redisstate_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/conntest"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

func TestTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := selfSigned(t, dir, "redis.example")
	addr := redistest.Start(t, redistest.TLS(cert, key)).Addr

	secure := conntest.Config(t, addr)
	secure.TLS, secure.TLSCA, secure.TLSServerName = true, cert, "redis.example"
	s := expect.Result(redisstate.Connect(t.Context(), secure, redistest.Namespace(t), quiet)).Value(t)
	mustOpen(t, s, define("x"))
	w := s.WakeWorker(nil, nil) // a Waker has its own connection
	expect.True(t, w.Wait(t.Context(), ever), "not woken over TLS")
	w.Close()
	s.Close()

	for words, change := range map[string]func(){
		"x509":                           func() { secure.TLSServerName = "another.example" },
		"authority: see [redis] tls_ca":  func() { secure.TLSCA, secure.TLSServerName = "", "redis.example" },
		"tls_ca: open":                   func() { secure.TLS, secure.TLSCA = true, filepath.Join(dir, "missing.pem") },
		"contains no certificate in PEM": func() { secure.TLS, secure.TLSCA = true, key },
	} {
		change()
		_, err := redisstate.Connect(t.Context(), secure, redistest.Namespace(t), quiet)
		var refused *conn.RefusedError
		expect.Fails(t, err, words)
		if !errors.As(err, &refused) {
			expect.Contains(t, err.Error(), "[redis] tls_ca", words)
		}
		secure = conntest.Config(t, addr)
		secure.TLS, secure.TLSCA = true, cert
	}
}

// A refused connection says nothing about TLS.
func TestRefusedConnectionWithTLS(t *testing.T) {
	t.Parallel()
	closed := conntest.Config(t, redistest.FreeAddr(t))
	closed.TLS = true
	log, lines := logged()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { _, err := redisstate.Connect(ctx, closed, redistest.Namespace(t), log); ended <- err }()
	line := <-lines
	expect.Contains(t, line, "connection refused")
	expect.NotContains(t, line, "TLS")
	cancel()
	expect.Fails(t, <-ended, "canceled")
}

// Redis may know its clients by their certificates. New connections read the files again, so that renewed certificates need no restart.
func TestCertificatesOfClients(t *testing.T) {
	t.Parallel()
	dir, renewed := t.TempDir(), t.TempDir()
	cert, key := selfSigned(t, dir, "redis.example")
	strict := redistest.Start(t, redistest.TLS(cert, key), redistest.Args("--tls-auth-clients", "yes", "--tls-ca-cert-file", cert)).Addr
	secure := conntest.Config(t, strict)
	secure.TLS, secure.TLSCA, secure.TLSServerName = true, cert, "redis.example"
	expect.Result(redisstate.Connect(t.Context(), secure, redistest.Namespace(t), quiet)).Fails(t, "certificate required: see [redis] tls_cert and tls_key")
	secure.TLSCert, secure.TLSKey = cert, key
	s := expect.Result(redisstate.Connect(t.Context(), secure, redistest.Namespace(t), quiet)).Value(t)
	mustOpen(t, s, define("x"))
	expect.True(t, !s.Conn.CertificateEnds().IsZero())

	for _, file := range []string{cert, key} { // no connection accepts the files that are there now
		must(t, os.Rename(file, filepath.Join(renewed, filepath.Base(file))))
	}
	other, otherKey := selfSigned(t, dir, "redis.example")
	mine := s.Conn.Redis.Conn() // a new connection, as the others are idle in the pool
	for range s.Conn.Redis.PoolStats().IdleConns + 1 {
		mine = s.Conn.Redis.Conn()
		t.Cleanup(func() { mine.Close() })
		if err := mine.Ping(t.Context()).Err(); err != nil {
			expect.Contains(t, err.Error(), "x509")
			must(t, os.Rename(filepath.Join(renewed, "cert.pem"), other))
			must(t, os.Rename(filepath.Join(renewed, "key.pem"), otherKey))
			expect.NoError(t, s.Conn.Redis.Conn().Ping(t.Context()).Err())
			return
		}
	}
	t.Error("the certificates were not read again")
}

// selfSigned makes a self-signed certificate for a host name. It writes the certificate and its key to files.
func selfSigned(t *testing.T, dir, name string) (certFile, keyFile string) {
	t.Helper()
	key := expect.Result(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)).Value(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	cert := expect.Result(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)).Value(t)
	der := expect.Result(x509.MarshalECPrivateKey(key)).Value(t)
	write := func(file, kind string, bytes []byte) string {
		path := filepath.Join(dir, file)
		must(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}), 0o600))
		return path
	}
	return write("cert.pem", "CERTIFICATE", cert), write("key.pem", "EC PRIVATE KEY", der)
}
