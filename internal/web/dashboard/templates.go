package dashboard

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/internal/task"
)

//go:embed templates static
var files embed.FS

// functions are what templates can call. Texts that programs or users have written go through line or text, which show
// invisible characters as escapes.
var functions = template.FuncMap{
	"base": func() string {
		return Base
	}, "number": number, "count": count, "size": format.Size, "span": format.Span,
	"seconds": format.Seconds, "rate": format.PerSecond,
	"line": format.OneLine, "text": format.Printable, "when": when, "state": format.StateText, "seg": url.PathEscape,
	"join": strings.Join, "address": address, "dict": dict,
	"query": query, "add": func(a, b int) int { return a + b }, "height": func(rows []roundRow) int {
		return 14 * len(rows)
	},
	"minus": func(a, b int64) int64 {
		return a - b
	}, "share": shareOf, "campaignstate": stateOf, "elapsed": format.Elapsed, "minutely": minutely,
	"perminute": perMinute,
	"states":    func() []task.State { return task.States }, "outputmark": func() template.HTML { return outputMark },
}

// templates has the template of each page, which may use those of templates/parts.html, and the template "layout" of
// all other parts. The first page parses them, because that takes as long as a whole call of tdf.
var templates = sync.OnceValue(func() map[string]*template.Template {
	common := []string{
		"templates/layout.html", "templates/parts.html", "templates/login.html",
		"templates/problem.html",
	}
	layout := template.Must(template.New("").Funcs(functions).ParseFS(files, common...))
	all := map[string]*template.Template{}
	names, _ := fs.Glob(files, "templates/*.html")
	for _, name := range names {
		all[strings.TrimSuffix(path.Base(name), ".html")] = template.Must(template.Must(layout.Clone()).ParseFS(files,
			name))
	}
	return all
})

// number groups the digits of a number: 1,234,567.
func number(n any) string {
	digits := fmt.Sprint(n)
	if _, err := strconv.ParseInt(digits, 10, 64); err != nil {
		return digits
	}
	sign := strings.TrimRight(digits, "0123456789")
	digits = digits[len(sign):]
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// count returns a number with its noun: "1 task", "1,234 tasks".
func count(n any, noun string) string {
	if fmt.Sprint(n) != "1" {
		noun += "s"
	}
	return number(n) + " " + noun
}

// when shows a time in UTC; the script shows it in the time zone of the reader. The zero time and the end of time are
// words.
func when(t time.Time) template.HTML {
	switch {
	case t.IsZero():
		return "–"
	case t.Year() > 5000:
		return "never"
	}
	t = t.UTC()
	return template.HTML(`<time datetime="` + t.Format("2006-01-02T15:04:05.000Z") + `">` +
		t.Format("2006-01-02 15:04:05 UTC") + `</time>`)
}

// address returns an address that differs from the present one in some parameters. An empty value removes its
// parameter.
func address(page string, query url.Values, pairs ...string) string {
	changed := maps.Clone(query)
	for i := 0; i+1 < len(pairs); i += 2 {
		changed.Del(pairs[i])
		if pairs[i+1] != "" {
			changed.Set(pairs[i], pairs[i+1])
		}
	}
	if len(changed) == 0 {
		return page
	}
	return page + "?" + changed.Encode()
}

// query returns the parameters of an address.
func query(pairs ...string) string {
	of := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		of.Set(pairs[i], pairs[i+1])
	}
	return of.Encode()
}

// dict returns a map, so that a template can pass several values to another one.
func dict(pairs ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	return m
}

// version is a digest of the static files. It is a part of their addresses, so that browsers may keep them.
var version = sync.OnceValue(func() string {
	sum := sha256.New()
	names, _ := fs.Glob(files, "static/*")
	for _, name := range names {
		content, _ := files.ReadFile(name)
		sum.Write(content)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
})

var types = map[string]string{
	".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

func (d *Dashboard) static(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	content, err := files.ReadFile("static/" + name)
	if kind := types[path.Ext(name)]; err == nil && kind != "" {
		w.Header().Set("Content-Type", kind)
		if r.PathValue("version") == version() {
			w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		}
		_, _ = w.Write(content)
		return
	}
	d.fail(w, r, nil, errNoPage)
}
