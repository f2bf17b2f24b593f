package operate

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/command"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/web"
)

type serve struct {
	a         *cli.App
	listen    string
	cert, key string
	insecure  bool
	hosts     []string
}

func Serve(a *cli.App) *cobra.Command {
	s := serve{a: a}
	c := &cobra.Command{
		Use: "serve", Short: "Serve the HTTP API of the namespace",
		Long: "Serves the HTTP API (docs/http.md) until Ctrl-C. Each call needs a token of tdf token add. On an address that other machines\n" +
			"can reach, the API needs --tls-cert and --tls-key. New tasks get the section [task_defaults] of the configuration.\n" +
			"The log on stderr has a line for each call.",
		Example: "  tdf serve\n" +
			"  tdf serve --listen :7443 --tls-cert cert.pem --tls-key key.pem --host tdf.example.org",
		Args: cli.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error { return s.run(c.Context()) },
	}
	flags := c.Flags()
	flags.StringVar(&s.listen, "listen", "127.0.0.1:7379", "`HOST:PORT` address to listen on; port 0 is a free port")
	flags.StringVar(&s.cert, "tls-cert", "", "`FILE` certificate of the server, in PEM, with the certificates of its issuers")
	flags.StringVar(&s.key, "tls-key", "", "`FILE` private key of the certificate, in PEM")
	flags.BoolVar(&s.insecure, "insecure", false, "no TLS on an address that other machines can reach, for example behind a proxy that has TLS")
	flags.StringArrayVar(&s.hosts, "host", nil, "`NAME` by which clients call the server, if it is neither localhost nor an IP address (repeatable)")
	return c
}

// check returns an error if the address cannot be used, or if tokens would travel over a network without TLS.
func (s *serve) check() error {
	host, _, err := net.SplitHostPort(s.listen)
	switch {
	case err != nil:
		return cli.Usagef("invalid value %q for --listen: want HOST:PORT", s.listen)
	case (s.cert == "") != (s.key == ""):
		return cli.Usagef("--tls-cert and --tls-key belong together")
	case s.cert == "" && !s.insecure && !isLoopback(host):
		return cli.Usagef("%s is not a loopback address: want --tls-cert and --tls-key, or --insecure behind a proxy that has TLS", s.listen)
	}
	return nil
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

func (s *serve) run(ctx context.Context) error {
	if err := s.check(); err != nil {
		return err
	}
	tool, err := s.a.Tool()
	if err != nil {
		return err
	}
	if err := s.a.WithManagerOf(ctx, tool, func(*cli.Client) error { return nil }); err != nil { // a wrong configuration must not look like an outage
		return err
	}
	o := manager.OptionsOf(tool.Manager)
	o.Log, o.Name = tool.Manager.Log.Logger(s.a.Stderr), "tdf serve"
	m, err := manager.New(o)
	if err != nil {
		return err
	}
	defer m.Close()
	listener, err := s.open()
	if err != nil {
		return err
	}
	scheme := "http"
	if s.cert != "" {
		scheme = "https"
	}
	s.a.Say("the HTTP API listens on %s://%s; for a token: tdf token add NAME --role operator", scheme, listener.Addr())
	return serveUntil(ctx, listener, web.New(m, web.Options{Hosts: s.hosts, Log: o.Log, Version: command.Version()}), o.Log)
}

func (s *serve) open() (net.Listener, error) {
	listener, err := net.Listen("tcp", s.listen)
	if err != nil || s.cert == "" {
		return listener, err
	}
	pair, err := tls.LoadX509KeyPair(s.cert, s.key)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}), nil
}

// drainTime is how long calls may go on after the signal to stop.
const drainTime = 10 * time.Second

// serveUntil serves calls until ctx ends, and lets the calls that are under way finish.
func serveUntil(ctx context.Context, listener net.Listener, handler http.Handler, log *slog.Logger) error {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug), // such as connections that break off; clients cause these lines
	}
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
		defer cancel()
		stopped <- errors.Join(server.Shutdown(bound), server.Close())
	})
	err := server.Serve(listener)
	if stop() { // Serve has failed by itself
		return err
	}
	return <-stopped
}
