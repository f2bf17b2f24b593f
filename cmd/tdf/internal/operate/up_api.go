package operate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"syscall"
	"time"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/apiserver"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/localpass"
	"github.com/tdf-framework/tdf/internal/web/dashboard"
	"github.com/tdf-framework/tdf/manager"
)

// upToken is the name of the token that tdf up makes at each start.
const upToken = "tdf-up"

// An upAPI is the HTTP API of tdf up. The zero value is none.
type upAPI struct {
	manager *manager.Manager
	server  *apiserver.Server
	header  *localpass.File // the header with the token
	login   string          // the address that logs in a browser once
	end     context.CancelFunc
	ended   chan error
}

// startAPI starts the HTTP API, and stores the token of an operator where only this user can read it. It does nothing
// if [http] listen is set to "".
func (u *up) startAPI(ctx context.Context, tool config.Tool, log *slog.Logger) (api upAPI, err error) {
	chosen := tool.IsSet("http", "listen")
	if !chosen {
		tool.HTTP.Listen = config.UsualListen
	}
	if tool.HTTP.Listen == "" {
		return upAPI{}, nil
	}
	o := manager.OptionsOf(tool.Manager)
	o.Name, o.Log = "tdf up", log
	if api.manager, err = manager.New(o); err != nil {
		return api, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(tool.Locate(err), api.stop())
		}
	}()
	token, err := replaceToken(ctx, admin.New(api.manager))
	if err != nil {
		return api, err
	}
	api.server, err = apiserver.Open(ctx, tool.HTTP, []*manager.Manager{api.manager}, log)
	if !chosen && errors.Is(err, syscall.EADDRINUSE) { // by another tdf up, for example
		tool.HTTP.Listen = "127.0.0.1:0"
		api.server, err = apiserver.Open(ctx, tool.HTTP, []*manager.Manager{api.manager}, log)
	}
	if err != nil {
		return api, err
	}
	at, err := url.Parse(api.server.URL)
	if err != nil {
		return api, err
	}
	if api.header, err = localpass.KeepToken(at.Host, token); err != nil {
		return api, fmt.Errorf("store the token of the HTTP API: %w", err)
	}
	api.login, err = loginAddress(ctx, admin.New(api.manager), api.server.URL+dashboard.Base, upToken)
	if err != nil {
		return api, err
	}
	api.run(context.WithoutCancel(ctx))
	return api, nil
}

// loginLife is how long a link to the dashboard logs in.
const loginLife = 24 * time.Hour

// loginAddress returns an address below that of the dashboard's overview. It has a key that logs in one browser as the
// holder of a token.
func loginAddress(ctx context.Context, a *admin.Admin, overview, token string) (string, error) {
	key, err := a.AddLogin(ctx, token, loginLife)
	return overview + "/login?key=" + key, err
}

// replaceToken adds a new token for this start. The token of an earlier tdf up with the same data is worthless from
// then on.
func replaceToken(ctx context.Context, a *admin.Admin) (string, error) {
	if err := a.RemoveToken(ctx, upToken); err != nil && !errors.Is(err, access.ErrNoToken) {
		return "", err
	}
	return a.AddToken(ctx, access.Token{Name: upToken, Role: access.Operator})
}

func (api *upAPI) run(ctx context.Context) {
	ctx, api.end = context.WithCancel(ctx)
	api.ended = make(chan error, 1)
	go func() { api.ended <- api.server.Run(ctx) }()
}

// stop ends the API, and revokes its token. The file with the token goes first, so that no client of this user sends
// the token to a program that listens at the address after the API.
func (api *upAPI) stop() (err error) {
	if api.header != nil {
		err = api.header.Close()
	}
	switch {
	case api.end != nil:
		api.end()
		err = errors.Join(err, <-api.ended)
	case api.server != nil:
		err = errors.Join(err, api.server.Close())
	}
	if api.manager != nil {
		ctx, cancel := context.WithTimeout(context.Background(), revokeTime)
		defer cancel()
		// best effort: Redis ends with tdf up, and the next start makes another token
		_ = admin.New(api.manager).RemoveToken(ctx, upToken)
		err = errors.Join(err, api.manager.Close())
	}
	return err
}

// about says how to call the API.
func (api *upAPI) about() string {
	if api.server == nil {
		return "none, because [http] listen is empty"
	}
	return fmt.Sprintf("%s/docs; with the token of an operator: curl -H @%s %s/api/v1/stats", api.server.URL,
		cli.ShellWord(api.header.Path), api.server.URL)
}
