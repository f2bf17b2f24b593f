package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/internal/apiserver"
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

// both runs two functions at the same time. If one of them fails, the context of the other ends.
func both(ctx context.Context, one, other func(context.Context) error) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	ended := make(chan error, 1)
	go func() { defer end(); ended <- one(ctx) }()
	err := other(ctx)
	end()
	return errors.Join(<-ended, err)
}
