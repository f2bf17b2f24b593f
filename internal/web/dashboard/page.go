package dashboard

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/managing"
	"github.com/tdf-framework/tdf/internal/pool"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/web/wire"
	"github.com/tdf-framework/tdf/manager"
)

// A page is an address that shows something. Its template templates/NAME.html defines "main", the part of the page
// below the navigation.
type page struct {
	path string // below Base, as in http.ServeMux
	name string
	nav  string // the label in the navigation, or "" for none

	// need says who may see the page.
	need func(access.Rights) bool
	// load returns the data of the template. Users with the same rights share what it returns, so it must not depend on
	// the name of the user.
	load func(context.Context, *visit) (any, error)
	// about says which tasks concern the page. Without it, the page is not live.
	about func(*visit) Subject
}

var toSee, toOpen, toChange, toInspect, toOperate = wire.ToSee.Met, wire.ToOpen.Met, wire.ToChange.Met,
	wire.ToInspect.Met, wire.ToOperate.Met

// everything concerns pages about the whole namespace.
func everything(v *visit) Subject { return Subject{Owner: v.owner} }

// A visit is a request of a logged-in user. The function load of a page sees only its first fields.
type visit struct {
	dashboard *Dashboard
	request   *http.Request
	query     url.Values
	rights    access.Rights
	owner     string // whose tasks the user may see; "" for all tasks

	outcome *outcome // set by an action that has more to say than a page shows

	user    access.Token
	session string           // the secret text of the session
	manager *manager.Manager // writes the name of the user into the logs of tasks
}

// path returns a part of the address, such as the id of a task.
func (v *visit) path(name string) string { return v.request.PathValue(name) }

// place returns the namespace that the address names, or the first one. A form names that of its page.
func (v *visit) place() *place {
	query := v.query
	if v.request.Method == http.MethodPost {
		if from, err := url.Parse(v.request.PostForm.Get("from")); err == nil {
			query = from.Query()
		}
	}
	for _, p := range v.dashboard.places {
		if p.name == query.Get("namespace") {
			return p
		}
	}
	return v.dashboard.places[0]
}

// acting returns the namespaces with managers that write the name of the user into the logs of tasks.
func (v *visit) acting() *admin.Shards { return v.dashboard.shards.As(managing.Of(v.manager).Name) }

// actingHere does the same as acting for the namespace of place.
func (v *visit) actingHere() *manager.Manager {
	return v.place().manager.As(managing.Of(v.manager).Name)
}

// own restricts a query to the tasks that the user may see.
func (v *visit) own(q manager.Query) manager.Query {
	if v.owner != "" {
		q.Owner = v.owner
	}
	return q
}

// Errors of pages.
var (
	errNoPage      = task.NewError(task.CodeNotFound, "there is no such page")
	errMayNot      = task.NewError(task.CodeForbidden, "your role does not allow this")
	errOtherOrigin = task.NewError(task.CodeForbidden, "another web page has sent this request")
	errStaleForm   = task.NewError(task.CodeForbidden,
		"the form is of another session; go back, reload the page, and try again")
)

// handle serves an address for the users who have a right. If form is above 0, a request has a form of at most so many
// bytes.
func (d *Dashboard) handle(pattern string, need func(access.Rights) bool, form int64,
	serve func(http.ResponseWriter, *visit) error,
) {
	d.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		v, err := d.visit(r)
		if err != nil {
			d.fail(w, r, v, err)
			return
		}
		if !need(v.rights) {
			d.fail(w, r, v, errMayNot)
			return
		}
		if form > 0 {
			err = readForm(w, v, form)
		}
		if err == nil {
			err = d.host.Work(r, func(ctx context.Context) error {
				v.request = r.WithContext(ctx)
				return serve(w, v)
			})
		}
		if err != nil {
			d.fail(w, r, v, err)
		}
	})
}

func (d *Dashboard) addPage(p *page) {
	d.handle("GET "+strings.TrimSuffix(Base+p.path, "/"), p.need, 0, func(w http.ResponseWriter, v *visit) error {
		if v.request.Header.Get("Accept") == eventStream {
			return d.live(v, p)
		}
		return d.show(w, v, p)
	})
}

// show writes a page.
func (d *Dashboard) show(w http.ResponseWriter, v *visit, p *page) error {
	main, err := d.view(v.request.Context(), v, p)
	if err != nil {
		return err
	}
	d.write(w, http.StatusOK, v, main, p.about != nil)
	return nil
}

// render makes the part of a page that users with the same rights share.
func (d *Dashboard) render(ctx context.Context, v *visit, p *page) (*view, error) {
	data, err := p.load(ctx, v)
	if err != nil {
		return nil, err
	}
	main, err := mainOf(ctx, p.name, shown{data, v.rights, v.request.URL.EscapedPath(), v.query})
	if err != nil {
		return nil, err
	}
	made := &view{title: p.nav, main: main}
	if t, ok := data.(interface{ Title() string }); ok {
		made.title = t.Title()
	}
	if t, ok := data.(taskPage); ok {
		made.output = t.Output
	}
	return made, nil
}

// shown is what a template gets.
type shown struct {
	Data   any
	Rights access.Rights
	Path   string
	Query  url.Values
}

// mainOf makes the main part of a page.
func mainOf(ctx context.Context, name string, of shown) ([]byte, error) {
	b := drawn{ctx: ctx}
	err := templates()[name].ExecuteTemplate(&b, "main", of)
	return b.Bytes(), err
}

// A drawn is a page that grows. It is charged for its own bytes, and for those of the page with its frame.
type drawn struct {
	bytes.Buffer
	ctx context.Context
}

func (d *drawn) Write(part []byte) (int, error) {
	if err := pool.Take(d.ctx, 3*int64(len(part))); err != nil {
		return 0, err
	}
	return d.Buffer.Write(part)
}

// WriteString does the same as Write, because templates prefer it.
func (d *drawn) WriteString(part string) (int, error) { return d.Write([]byte(part)) }

// partOf makes a part that no page has of its own, and which does not depend on what a page loads.
func partOf(name string, data any) []byte {
	var b bytes.Buffer
	if err := templates()["layout"].ExecuteTemplate(&b, name, data); err != nil {
		panic(err) // the tests make all parts
	}
	return b.Bytes()
}

// A frame is what surrounds the main part of a page.
type frame struct {
	Title     string
	Main      template.HTML
	Nav       []link
	Places    []link // to the same page about each namespace; none if there is only one, or if the page is about all
	User      string
	Role      access.Role
	CSRF      string
	Live      bool
	Namespace string
	Version   string // of the static files
	Path      string
	From      string // of the page, for forms; "" means Path
}

type link struct {
	Path, Label string
	Here        bool
}

// write writes a page with its frame. Without a visit, the page has no navigation.
func (d *Dashboard) write(w http.ResponseWriter, status int, v *visit, main *view, live bool) {
	f := frame{
		Title: main.title, Main: main.withOutput(), Live: live,
		Namespace: d.namespace, Version: version(),
	}
	if v != nil {
		f.Places = v.otherPlaces()
		f.User, f.Role, f.CSRF, f.Path = v.user.Name, v.user.Role, csrfOf(v.session), v.request.URL.EscapedPath()
		if len(f.Places) > 0 {
			f.From = f.Path + "?" + query("namespace", v.place().name)
		}
		for _, p := range pages {
			if p.nav != "" && p.need(v.rights) {
				at := strings.TrimSuffix(Base+p.path, "/")
				f.Nav = append(f.Nav, link{at, p.nav, at == f.Path || p.path != "/" &&
					strings.HasPrefix(f.Path, at+"/")})
			}
		}
	}
	all := partOf("layout", f)
	w.WriteHeader(status)
	_, _ = w.Write(all)
}

// aboutOne are the pages about one namespace.
var aboutOne = []string{
	"/", "/workers", "/queues", "/limits", "/programs", "/notices", "/doctor", "/new-campaign",
}

// otherPlaces returns the links to the page about each namespace.
func (v *visit) otherPlaces() (all []link) {
	at := strings.TrimPrefix(v.request.URL.EscapedPath(), Base)
	if !v.dashboard.shards.Several() || !slices.Contains(aboutOne, cmp.Or(at, "/")) {
		return nil
	}
	for _, p := range v.dashboard.places {
		all = append(all, link{v.request.URL.EscapedPath() + "?" + query("namespace", p.name), p.name, p == v.place()})
	}
	return all
}

// fail writes a page about an error. Without a session, it sends the user to the login.
func (d *Dashboard) fail(w http.ResponseWriter, r *http.Request, v *visit, err error) {
	if errors.Is(err, access.ErrLoggedOut) && r.Method == http.MethodGet && r.Header.Get("Accept") != eventStream {
		http.Redirect(w, r, Base+"/login?next="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
		return
	}
	p := d.host.Problem(r, err)
	if errors.Is(err, access.ErrLoggedOut) {
		p.Status, p.Title = http.StatusUnauthorized, "Logged out"
	}
	d.write(w, p.Status, v, &view{title: p.Title, main: partOf("problem", p)}, false)
}

// An action is a request that changes something. Then the browser goes to a page.
type action struct {
	path string // below Base, as in http.ServeMux
	need func(access.Rights) bool
	body int64 // the largest size of the form, in bytes; 0 means maxForm
	// do makes the change, and returns the address to which the browser goes. An empty address is that from which the
	// browser came.
	do func(context.Context, *visit) (to string, err error)
}

// An outcome says what an action has done, on a page of its own.
type outcome struct {
	Text    string
	Reasons []string // why it has not done more
	Back    string   // the address of the page to which the user returns
}

// An unfinished is the error of an action that shows its form again: with what is wrong, or with a preview.
type unfinished struct {
	status int
	*view
}

func (*unfinished) Error() string { return "the form is not finished" }

const maxForm = 1 << 20

// formTime is how long the browser may take to send a form of maxForm bytes.
const formTime = 30 * time.Second

func (d *Dashboard) addAction(a *action) {
	d.handle("POST "+Base+a.path, a.need, max(a.body, maxForm), func(w http.ResponseWriter, v *visit) error {
		r := v.request
		to, err := a.do(r.Context(), v)
		d.views.forget()
		again := new(unfinished)
		switch {
		case errors.As(err, &again):
			d.write(w, again.status, v, again.view, false)
			return nil
		case err != nil:
			return err
		case v.outcome != nil:
			d.write(w, http.StatusOK, v, &view{title: v.outcome.Text, main: partOf("outcome", v.outcome)}, false)
			return nil
		case to == "":
			to = local(r.Form.Get("from"))
		}
		http.Redirect(w, r, to, http.StatusSeeOther)
		return nil
	})
}

// readForm reads the form of an action, and checks that a page of this session has sent it.
func readForm(w http.ResponseWriter, v *visit, largest int64) error {
	r := v.request
	// an error means that there is no connection, as in tests
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(formTime * time.Duration(1+largest/(16*maxForm))))
	r.Body = http.MaxBytesReader(w, r.Body, largest)
	// the host has charged for the bytes, so that none need go to files
	if err := r.ParseMultipartForm(largest); err != nil && !errors.Is(err, http.ErrNotMultipart) {
		if task.CodeOf(err) != task.CodeFailed {
			return err
		}
		return task.NewError(task.CodeInvalid, "the form cannot be read, or is too large")
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	if !sameText(r.PostForm.Get("csrf"), csrfOf(v.session)) {
		return errStaleForm
	}
	return nil
}

// local returns an address of the dashboard, or the overview if the text is none.
func local(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || u.Path != Base &&
		!strings.HasPrefix(u.Path, Base+"/") || strings.ContainsAny(address, "\\\r\n\t") {
		return Base
	}
	return u.String()
}
