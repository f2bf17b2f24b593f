package manager

import "github.com/tdf-framework/tdf/manager/internal/hooks"

func init() {
	hooks.New = func(s hooks.Setup, options any) (any, error) {
		settings, err := options.(Options).settings()
		return &Manager{settings: settings, store: s.Store, wait: s.Wait}, err
	}
}
