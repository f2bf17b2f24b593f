package conn

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/config"
)

// addTLS makes connections speak TLS. Each connection reads the files of certificates again, so that a renewed one
// needs no restart.
func addTLS(options *redis.Options, cfg config.Redis) (err error) {
	if cfg.TLSConfig != nil {
		options.TLSConfig = cfg.TLSConfig.Clone()
		return nil
	}
	options.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: cfg.TLSServerName}
	if cfg.TLSCA != "" {
		if options.TLSConfig.RootCAs, err = readRoots(cfg.TLSCA); err != nil {
			return fmt.Errorf("read [redis] tls_ca: %w", err)
		}
	}
	if cfg.TLSCert == "" {
		return nil
	}
	read := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(cfg.TLSCert, cfg.TLSKey)
		return &pair, err
	}
	if _, err := read(nil); err != nil {
		return fmt.Errorf("read [redis] tls_cert and tls_key: %w", err)
	}
	options.TLSConfig.GetClientCertificate = read
	return nil
}

// CertificateEnds returns when the certificate ends by which Redis knows this client; the zero time without one.
func (s *Conn) CertificateEnds() (end time.Time) {
	t := s.options.TLSConfig
	if t == nil || t.GetClientCertificate == nil {
		return end
	}
	if pair, err := t.GetClientCertificate(nil); err == nil && pair.Leaf != nil {
		end = pair.Leaf.NotAfter
	}
	return end
}

func readRoots(path string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s contains no certificate in PEM form", path)
	}
	return roots, nil
}
