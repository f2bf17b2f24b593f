package apiserver

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"time"

	"github.com/tdf-framework/tdf/internal/config"
)

// tlsOf returns the TLS settings of a configuration, or nil if the API has no TLS. Every error is a *[config.Error]
// without a Source.
func tlsOf(cfg config.HTTP) (*tls.Config, error) {
	if !cfg.HasTLS() {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(cfg.TLSCert, cfg.TLSKey)
	if err != nil {
		return nil, &config.Error{Section: "http", Key: "tls_cert", Problem: err.Error(), Err: err}
	}
	t := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	if cfg.ClientCA == "" {
		return t, nil
	}
	authorities, err := os.ReadFile(cfg.ClientCA)
	if err != nil {
		return nil, &config.Error{Section: "http", Key: "client_ca", Problem: err.Error(), Err: err}
	}
	// a client without a certificate may have a token
	t.ClientCAs, t.ClientAuth = x509.NewCertPool(), tls.VerifyClientCertIfGiven
	if !t.ClientCAs.AppendCertsFromPEM(authorities) {
		return nil, &config.Error{Section: "http", Key: "client_ca", Problem: "the file has no certificate"}
	}
	return t, nil
}

// endOf returns when the certificate of TLS settings ends; zero without settings.
func endOf(t *tls.Config) time.Time {
	if t == nil || t.Certificates[0].Leaf == nil {
		return time.Time{}
	}
	return t.Certificates[0].Leaf.NotAfter
}
