package dashboard

import (
	"context"
	"iter"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/managing"
	"github.com/tdf-framework/tdf/internal/results"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/userfile"
	"github.com/tdf-framework/tdf/internal/web/wire"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/sweep"
)

// Base is the beginning of the addresses of all pages.
const Base = "/ui"

// A Host is the server of the HTTP API, which serves the dashboard, too. So pages and calls have the same limits and
// the same errors.
type Host interface {
	// Act makes a request a call of the holder of a token, in a session, and returns the manager with which the request
	// changes tasks.
	Act(r *http.Request, t access.Token, login Login) (*manager.Manager, error)
	// MayTry counts a try to log in. The error says that there were too many from this address.
	MayTry(r *http.Request) error
	// Problem returns how to tell the user about an error, and logs what the user must not see.
	Problem(r *http.Request, err error) Problem
	// Work does the work of a request, whose context ends with its time. An action may take ten times as long as a page.
	Work(r *http.Request, do func(context.Context) error) error
	// Stream makes the answer to a request a stream of a media type, and calls write to write it. The stream ends when
	// the client goes away, when the server stops, and when the session of the request does not hold any more.
	Stream(r *http.Request, kind string, write func(Stream) error) error
	// Watch signals changes of tasks to a channel with room for one signal, until leave is called.
	Watch(ctx context.Context, about Subject, signal chan<- struct{}) (leave func(), err error)
	// OpenSweep opens the tasks of a sweep, or only checks them if the sweep has a preview.
	OpenSweep(r *http.Request, s Sweep) (Swept, error)
	// ServeAPI serves a call of the API. Act has allowed the request before.
	ServeAPI(w http.ResponseWriter, r *http.Request)
}

// A Login is the session of a browser, with the rights of one request.
type Login struct {
	Key string // of all sessions for which Holds means the same
	// Holds reports whether the session is valid, and still has these rights. While a request is a stream, the host
	// calls it every few seconds, once for all streams with the same key.
	Holds func(context.Context) bool
}

// A Problem tells the user about an error.
type Problem struct {
	Status         int
	Title, Detail  string
	CorrelationID  string
	RetryInSeconds int // 0 for no advice
}

// A Sweep is a campaign with a task for each row.
type Sweep struct {
	Task    map[string]any // the properties of all tasks, as in the API
	Input   string         // a template of the inputs; "" for all parameters in their order
	Rows    func() iter.Seq2[sweep.Row, error]
	Preview int // how many inputs to return, instead of opening the tasks
}

// Swept is what a sweep has opened, or would open.
type Swept struct {
	Tasks, Repeated int64 // tasks, and rows that repeat an earlier row
	Inputs          []string
}

// A Stream is an answer that is written part by part.
type Stream interface {
	// Send sends a text to the client.
	Send(text string) error
	// Done is closed when the stream must end.
	Done() <-chan struct{}
}

// A Subject says about which tasks a page wants to know.
type Subject struct {
	IDs   []int64 // if empty, all tasks
	Group string  // if empty, all groups
	Owner string  // if empty, all owners
}

// Options configure a dashboard.
type Options struct {
	// Users is the path of the user file. Without it, people log in with tokens.
	Users string
	// Public is the origin at which browsers reach the dashboard, such as that of a proxy; "" if it is not known.
	Public string
	// Timeout is how long a page may take. An action may take ten times as long.
	Timeout time.Duration
}

// A Dashboard serves the pages of a namespace.
type Dashboard struct {
	Options
	host      Host
	namespace string
	failOn    task.FailOn // of new tasks
	shards    *admin.Shards
	places    []*place // the namespaces; the first one has the sessions
	admin     *admin.Admin
	mux       *wire.Mux
	origins   *http.CrossOriginProtection
	users     *userfile.Users // nil without a user file
	views     cache
	feeds     feeds
	outputs   transcripts
	facts     cache
	tables    results.Tables
}

// A place is one of the namespaces.
type place struct {
	name    string
	manager *manager.Manager
	admin   *admin.Admin
	queues  admin.QueueCounter
	several bool // there are others
}

// taskName returns the name of a task, as [manager.Task.Name] does.
func (p *place) taskName(id int64) string {
	if p.several {
		return manager.TaskName(p.name, id)
	}
	return manager.TaskName("", id)
}

// New returns the dashboard of the namespaces of managers, which work as one. Tokens and sessions are those of the
// first. The addresses begin with [Base].
func New(all []*manager.Manager, host Host, o Options) *Dashboard {
	d := &Dashboard{
		Options: o, host: host, failOn: managing.Of(all[0]).Config.TaskDefaults.FailOn, shards: admin.NewShards(all...),
		mux: &wire.Mux{}, facts: cache{most: maxFacts},
		origins: http.NewCrossOriginProtection(),
	}
	for i, name := range d.shards.Namespaces() {
		d.places = append(d.places, &place{name: name, manager: all[i], admin: admin.New(all[i]), several: len(all) > 1})
	}
	d.namespace, d.admin = strings.Join(d.shards.Namespaces(), ", "), d.places[0].admin
	d.feeds.dashboard, d.feeds.pause, d.feeds.quiet = d, livePause, liveQuiet
	if o.Users != "" {
		d.users = userfile.Open(o.Users, managing.Of(all[0]).Log)
	}
	d.mux.HandleFunc("GET "+Base+"/static/{version}/{name}", d.static)
	d.mux.HandleFunc("GET "+Base+"/login", d.showLogin)
	d.mux.HandleFunc("POST "+Base+"/login", d.login)
	d.mux.HandleFunc("POST "+Base+"/logout", d.logout)
	d.handle("GET "+Base+"/api/{path...}", func(access.Rights) bool { return true }, 0, d.serveAPI)
	for i := range pages {
		d.addPage(&pages[i])
	}
	for i := range actions {
		d.addAction(&actions[i])
	}
	for i := range downloads {
		d.addFile(&downloads[i])
	}
	d.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { d.fail(w, r, nil, errNoPage) })
	return d
}

// Patterns returns the patterns of all addresses, as in [http.ServeMux].
func (d *Dashboard) Patterns() []string { return d.mux.Patterns }

// ServeHTTP serves a page. The host must have checked the address of the client, and the name of the host in the
// request. It has read the bodies of requests without a session, which log in and out.
func (d *Dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header())
	if err := d.origins.Check(r); err != nil {
		d.fail(w, r, nil, errOtherOrigin)
		return
	}
	d.mux.ServeHTTP(w, r)
}

// setHeaders sets the headers of each page. The browser loads scripts and styles only from this server, and shows the
// page in no frame.
func setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "+
		"connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Referrer-Policy", "same-origin") // with no-referrer, browsers send their forms with the origin null
	h.Add("Vary", "Accept, Cookie")
}

// serveAPI serves the routes of the API that only read, for downloads and for the script of the pages. The API itself
// accepts no cookies.
func (d *Dashboard) serveAPI(w http.ResponseWriter, v *visit) error {
	r := v.request
	name := path.Base(r.PathValue("path")) + ".csv"
	query := v.query
	if query.Get("as") == "jsonl" {
		name = strings.TrimSuffix(name, ".csv") + ".jsonl"
		r.Header.Set("Accept", "application/x-ndjson")
		query.Del("as")
	}
	of := r.Clone(r.Context())
	of.URL = &url.URL{
		Path: "/api/" + r.PathValue("path"), RawPath: r.URL.EscapedPath()[len(Base):],
		RawQuery: query.Encode(),
	}
	w.Header().Del("Content-Type")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox")
	w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	d.host.ServeAPI(w, of)
	return nil
}
