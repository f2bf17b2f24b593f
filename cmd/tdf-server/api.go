package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/tdf-framework/tdf/internal/apiserver"
	"github.com/tdf-framework/tdf/internal/config"
)

// An api is the HTTP API of the server. The zero value is none.
type api struct {
	server *apiserver.Server
	end    func() // closes the managers
}

// openAPI opens the address of [http] listen.
func openAPI(ctx context.Context, name string, cfg config.Tool, log *slog.Logger) (a api, err error) {
	if cfg.HTTP.Listen == "" {
		return a, nil
	}
	all, end, err := apiserver.Managers(cfg, name, log)
	if err != nil {
		return a, err
	}
	if a.server, err = apiserver.Open(ctx, cfg.HTTP, all, log); err != nil {
		end()
		return a, err
	}
	a.end = end
	log.Info("serving the HTTP API", "url", a.server.URL)
	return a, nil
}

// run serves calls until ctx ends.
func (a api) run(ctx context.Context) error {
	if a.server == nil {
		<-ctx.Done()
		return nil
	}
	return a.server.Run(ctx)
}

func (a api) close() {
	if a.server != nil {
		_ = a.server.Close() // fails if it has run
		a.end()
	}
}

// together runs functions at the same time. When one of them returns, the context of the others ends.
func together(ctx context.Context, runs ...func(context.Context) error) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	ended := make(chan error, len(runs))
	for _, run := range runs {
		go func() { defer end(); ended <- run(ctx) }()
	}
	errs := make([]error, len(runs))
	for i := range errs {
		errs[i] = <-ended
	}
	return errors.Join(errs...)
}
