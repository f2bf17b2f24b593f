package apiserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/expect"
)

// An authority makes certificates for tests.
type authority struct {
	testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string // PEM file of the certificate
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{TB: t, key: expect.Result(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)).Value(t), file: filepath.Join(t.TempDir(), "ca.pem")}
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der := expect.Result(x509.CreateCertificate(rand.Reader, about, about, a.key.Public(), a.key)).Value(t)
	a.cert = expect.Result(x509.ParseCertificate(der)).Value(t)
	a.write(a.file, "CERTIFICATE", der)
	return a
}

func (a *authority) write(path, kind string, der []byte) {
	a.Helper()
	expect.NoError(a, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
}

// issue returns the files of a certificate for 127.0.0.1 and its key.
func (a *authority) issue(name string, usage x509.ExtKeyUsage, life time.Duration) (cert, key string) {
	a.Helper()
	dir := a.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	secret := expect.Result(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)).Value(a)
	about := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(life),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{usage},
	}
	a.write(cert, "CERTIFICATE", expect.Result(x509.CreateCertificate(rand.Reader, about, a.cert, secret.Public(), a.key)).Value(a))
	a.write(key, "PRIVATE KEY", expect.Result(x509.MarshalPKCS8PrivateKey(secret)).Value(a))
	return cert, key
}

// client returns the settings of a client that trusts the authority, and has a certificate of another one if its files are not "".
func (a *authority) client(cert, key string) *tls.Config {
	a.Helper()
	t := &tls.Config{RootCAs: x509.NewCertPool()}
	t.RootCAs.AddCert(a.cert)
	if cert != "" {
		pair := expect.Result(tls.LoadX509KeyPair(cert, key)).Value(a)
		t.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil } // also one that the server does not ask for
	}
	return t
}
