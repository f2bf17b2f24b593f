package operate

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/apiserver"
	"github.com/tdf-framework/tdf/internal/config"
)

func Serve(a *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use: "serve", Short: "Serve the HTTP API of the namespace",
		Long: "Serves the HTTP API (docs/http.md) until Ctrl-C. Each call needs a token of tdf token add. On an " +
			"address that other machines\n" +
			"can reach, the API needs a certificate. The flags override the section [http] of the configuration. " +
			"New tasks get the section\n" +
			"[task_defaults]. The log on stderr has a line for each call.",
		Example: "  tdf serve\n" +
			"  tdf serve --listen :7443 --tls-cert cert.pem --tls-key key.pem --host tdf.example.org",
		Args: cli.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error { return serve(c.Context(), a, httpFlags(c.Flags())) },
	}
	flags := c.Flags()
	flags.String("listen", config.UsualListen, "`HOST:PORT` address to listen on; port 0 is a free port")
	flags.String("tls-cert", "", "`FILE` certificate of the server, in PEM, with the certificates of its issuers")
	flags.String("tls-key", "", "`FILE` private key of the certificate, in PEM")
	flags.String("client-ca", "", "`FILE` authorities, in PEM, whose certificates let clients in without a token")
	flags.Bool("insecure", false,
		"no TLS on an address that other machines can reach, for example behind a proxy that has TLS")
	flags.StringArray("host", nil,
		"`NAME` by which clients call the server, if it is neither localhost nor an IP address, or the whole address "+
			"for browsers (repeatable)")
	return c
}

// httpKeys are the keys of [http] that the flags of tdf serve set.
var httpKeys = map[string]string{
	"listen": "listen", "tls-cert": "tls_cert", "tls-key": "tls_key", "client-ca": "client_ca", "insecure": "insecure",
	"host": "hosts",
}

func httpFlags(flags *pflag.FlagSet) (all []config.Override) {
	flags.Visit(func(f *pflag.Flag) {
		value := f.Value.String()
		if list, ok := f.Value.(pflag.SliceValue); ok {
			value = strings.Join(list.GetSlice(), " ")
		}
		if key := httpKeys[f.Name]; key != "" {
			all = append(all, config.Override{Section: "http", Name: key, Value: value, Source: "--" + f.Name})
		}
	})
	return all
}

func serve(ctx context.Context, a *cli.App, flags []config.Override) error {
	tool, err := a.Tool(flags...)
	if err != nil {
		return err
	}
	if tool.HTTP.Listen == "" {
		tool.HTTP.Listen = config.UsualListen
	}
	// a wrong configuration must not look like an outage
	if err := a.WithManagerOf(ctx, tool, func(*cli.Client) error { return nil }); err != nil {
		return err
	}
	log := tool.Manager.Log.Logger(a.Stderr)
	all, closeAll, err := apiserver.Managers(tool, "tdf serve", log)
	if err != nil {
		return err
	}
	defer closeAll()
	api, err := apiserver.Open(ctx, tool.HTTP, all, log)
	if err != nil {
		return tool.Locate(err)
	}
	a.Say("the HTTP API listens on %s; for a token: tdf token add NAME --role operator", api.URL)
	return api.Run(ctx)
}
