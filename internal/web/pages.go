package web

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"reflect"
	"slices"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/broker"
	"github.com/tdf-framework/tdf/internal/managing"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/web/wire"
	"github.com/tdf-framework/tdf/manager"
)

// config returns the configuration of huma. It serves no pages and loads nothing from other hosts.
func (a *api) config() huma.Config {
	return huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: "TDF", Version: a.Version,
				Description: "Open, watch and steer the tasks of a namespace. docs/http.md explains the API.",
			},
			Components: &huma.Components{
				Schemas: huma.NewMapRegistry("#/components/schemas/", schemaName),
				SecuritySchemes: map[string]*huma.SecurityScheme{"token": {
					Type: "http", Scheme: "bearer",
					Description: "a token from tdf token add",
				}},
			},
		},
		Formats: map[string]huma.Format{
			"application/json": {Marshal: writeJSON, Unmarshal: readJSON},
			"json":             {Marshal: writeJSON, Unmarshal: readJSON}, // of application/problem+json
			jsonLines:          {Marshal: writeJSON, Unmarshal: readLines},
		},
		DefaultFormat:                "application/json",
		RejectUnknownQueryParameters: true,
		Transformers:                 []huma.Transformer{ofHuma},
	}
}

// schemaName returns the name of the schema of a type: its own name, except for the tasks of claims.
func schemaName(t reflect.Type, hint string) string {
	if t == reflect.TypeFor[broker.ClaimedTask]() {
		return "Task"
	}
	return huma.DefaultSchemaNamer(t, hint)
}

func writeJSON(w io.Writer, v any) error { return wire.Encoder(w).Encode(v) }

// readJSON reads one value, and refuses members that the type does not have.
func readJSON(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("more than one JSON value; use " + jsonLines + " for several lines")
	}
	return nil
}

// readLines reads a value on each line, as a list.
func readLines(data []byte, v any) error {
	lines := slices.DeleteFunc(bytes.Split(data, []byte("\n")), func(line []byte) bool {
		return len(bytes.TrimSpace(line)) == 0
	})
	return readJSON(slices.Concat([]byte("["), bytes.Join(lines, []byte(",")), []byte("]")), v)
}

// addPages adds the paths that need no token.
func (a *api) addPages() {
	document := a.huma.OpenAPI()
	problems := huma.SchemaFromType(document.Components.Schemas, reflect.TypeFor[problem]())
	document.Components.Schemas.Map()["ErrorModel"] = problems
	a.page("/openapi.json", "application/openapi+json", func() ([]byte, error) { return json.Marshal(document) })
	a.page("/openapi.yaml", "application/openapi+yaml", document.YAML)
	a.page("/docs", htmlType, func() ([]byte, error) { return render(docsPage, a.operations()) })
	a.page("/errors", htmlType, func() ([]byte, error) { return render(errorsPage, kinds) })
	a.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	a.mux.HandleFunc("GET /readyz", a.ready)
	a.addMetrics()
	a.mux.HandleFunc("/", a.notFound)
}

const htmlType = "text/html; charset=utf-8"

// page serves a document that always stays the same. It is made for the first call, because most processes never serve
// it.
func (a *api) page(path, kind string, write func() ([]byte, error)) {
	content := sync.OnceValue(func() []byte {
		made, err := write()
		if err != nil {
			panic(err) // the tests make the documents
		}
		return made
	})
	a.mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(content())
	})
}

// render makes a page of the text of its template.
func render(text string, data any) ([]byte, error) {
	t, err := template.New("").Parse(text)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = t.Execute(&b, data)
	return b.Bytes(), err
}

// ready reports whether tasks can be opened and settled.
func (a *api) ready(w http.ResponseWriter, r *http.Request) {
	var replication admin.Replication
	err := a.work(r.Context(), a.Timeout, func(ctx context.Context) (err error) {
		for _, m := range append([]*manager.Manager{a.manager}, a.Shards...) {
			if err := admin.New(m).Ready(ctx); err != nil {
				return fmt.Errorf("namespace %s: %w", managing.Of(m).Config.Namespace, err)
			}
		}
		replication, err = a.admin.Replication(ctx)
		return err
	})
	if err != nil {
		a.problemOf(r.Context(), err).write(w)
		return
	}
	_, _ = io.WriteString(w, "ready\n"+replicationText(replication))
}

// replicationText names the primary and its replicas, or returns "" if there are none.
func replicationText(r admin.Replication) string {
	if len(r.Replicas) == 0 {
		return ""
	}
	text := "primary " + r.Primary + "\n"
	for _, replica := range r.Replicas {
		name := "replica "
		if replica.Lags() {
			name = "replica that lags "
		}
		text += name + replica.String() + "\n"
	}
	if r.Sentinels > 0 {
		text += fmt.Sprintf("sentinels that work: %d of %d\n", r.SentinelsUp, r.Sentinels)
	}
	return text
}

// notFound answers a call whose path or method no route has.
func (a *api) notFound(w http.ResponseWriter, r *http.Request) {
	p := refuse(string(task.CodeNotFound), "no such path")
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := a.mux.Handler(other); pattern != "/" && pattern != "" {
			p = refuse(noMethod, "the path has no method "+short(r.Method))
			w.Header().Add("Allow", method)
		}
	}
	a.problemOf(r.Context(), p).write(w)
}

// style is the only style of the pages, which the Content-Security-Policy of every answer names by its digest.
const style = `body{font:16px/1.5 sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}code{background:#eee;padding:0 .2em}dt{font-weight:bold;margin-top:1rem}`

// contentPolicy lets a browser use the style of the pages, and nothing else.
var contentPolicy = sync.OnceValue(func() string {
	digest := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(digest[:]) +
		"'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
})

const errorsPage = `<!doctype html><html lang="en"><title>Errors of the TDF API</title><style>` + style + `</style>
<h1>Errors</h1><p>An answer with one of these status codes has the type application/problem+json (RFC 9457).
Its member <code>type</code> links to this page.</p>
<dl>{{range .}}<dt id="{{.Code}}">{{.Status}} {{.Title}} <code>{{.Code}}</code></dt><dd>{{.Text}}</dd>
{{end}}</dl></html>
`

const docsPage = `<!doctype html><html lang="en"><title>TDF API</title><style>` + style + `</style>
<h1>TDF API</h1><p>Every call below /api needs a token, in the header <code>Authorization: Bearer TOKEN</code>. Schema:
<a href="/openapi.json">/openapi.json</a>, <a href="/openapi.yaml">/openapi.yaml</a>. <a href="/errors">Errors</a></p>
{{range .}}<h2 id="{{.OperationID}}"><code>{{.Method}} {{.Path}}</code></h2><p>{{.Summary}}. {{.Description}}</p>
{{if .Parameters}}<ul>{{range .Parameters}}<li><code>{{.Name}}</code> ({{.In}}) {{.Description}}</li>{{end}}</ul>{{end}}
{{end}}</html>
`

// operations returns the operations of the document, in the order of the routes.
func (a *api) operations() (all []*huma.Operation) {
	for _, r := range a.routes {
		item := a.huma.OpenAPI().Paths[base+r.path]
		all = append(all, map[string]*huma.Operation{
			http.MethodGet: item.Get, http.MethodPost: item.Post,
			http.MethodPut: item.Put, http.MethodDelete: item.Delete,
		}[r.method])
	}
	return all
}
