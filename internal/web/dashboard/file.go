package dashboard

import (
	"context"
	"net/http"

	"github.com/tdf-framework/tdf/internal/access"
)

// A file is an address whose answer is a file for download.
type file struct {
	path, name string
	need       func(access.Rights) bool
	read       func(context.Context, *visit) (kind string, content []byte, err error)
}

func (d *Dashboard) addFile(f *file) {
	d.handle("GET "+Base+f.path, f.need, 0, func(w http.ResponseWriter, v *visit) error {
		kind, content, err := f.read(v.request.Context(), v)
		if err != nil {
			return err
		}
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox")
		w.Header().Set("Content-Disposition", `attachment; filename="`+f.name+`"`)
		_, _ = w.Write(content)
		return nil
	})
}
