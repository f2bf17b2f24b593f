package manager

import "github.com/tdf-framework/tdf/manager/internal/hooks"

func init() {
	hooks.New = func(s hooks.Setup, options any) (any, error) {
		settings, err := options.(Options).settings()
		m := newManager(settings, s.Store)
		m.wait = s.Wait
		return m, err
	}
}
