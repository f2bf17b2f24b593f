package redisstate

import (
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
	"github.com/tdf-framework/tdf/redisstate/conn"
)

func TestTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := selfSigned(t, dir, "redis.example")
	addr := redistest.Start(t, redistest.TLS(cert, key)).Addr

	secure := conntest.Config(t, addr)
	secure.TLS, secure.TLSCA, secure.TLSServerName = true, cert, "redis.example"
	s := expect.Result(Connect(t.Context(), secure, redistest.Namespace(t), quiet)).Value(t)
	mustOpen(t, s, define("x"))
	w := s.WakeWorker(nil, nil) // a Waker has its own connection
	expect.True(t, w.Wait(t.Context(), ever), "not woken over TLS")
	w.Close()
	s.Close()

	for words, change := range map[string]func(){
		"x509":                           func() { secure.TLSServerName = "another.example" },
		"certificate":                    func() { secure.TLSCA, secure.TLSServerName = "", "redis.example" },
		"tls_ca: open":                   func() { secure.TLS, secure.TLSCA = true, filepath.Join(dir, "missing.pem") },
		"contains no certificate in PEM": func() { secure.TLS, secure.TLSCA = true, key },
	} {
		change()
		_, err := Connect(t.Context(), secure, redistest.Namespace(t), quiet)
		var refused *conn.RefusedError
		expect.Fails(t, err, words)
		if !errors.As(err, &refused) {
			expect.Contains(t, err.Error(), "[redis] tls_ca", words)
		}
		secure = conntest.Config(t, addr)
		secure.TLS, secure.TLSCA = true, cert
	}
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
