package dashboard

import (
	"context"
	"net/http"

	"github.com/tdf-framework/tdf/access"
)

// A file is an address whose answer is a file for download.
type file struct {
	path, name string
	need       func(access.Rights) bool
	read       func(context.Context, *visit) (kind string, content []byte, err error)
}

func (d *Dashboard) addFile(f *file) {
	d.mux.HandleFunc("GET "+Base+f.path, func(w http.ResponseWriter, r *http.Request) {
		v, err := d.visit(r)
		if err == nil && !f.need(v.rights) {
			err = errMayNot
		}
		if err != nil {
			d.fail(w, r, v, err)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), d.Timeout)
		defer cancel()
		kind, content, err := f.read(ctx, v)
		if err != nil {
			d.fail(w, r, v, err)
			return
		}
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox")
		w.Header().Set("Content-Disposition", `attachment; filename="`+f.name+`"`)
		_, _ = w.Write(content)
	})
}
