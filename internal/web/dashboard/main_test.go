package dashboard_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/leaktest"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/internal/web"
	"github.com/tdf-framework/tdf/internal/webtest"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate"
)

func TestMain(m *testing.M) { os.Exit(leaktest.M{M: m, End: endChromium}.Run()) }

// A site is a dashboard in a test, with a token for each role.
type site struct {
	testing.TB
	http.Handler
	cfg     config.Manager
	manager *manager.Manager
	admin   *admin.Admin
	store   *redisstate.Store
	tokens  map[access.Role]string
}

// newSite returns a site for a test that runs in parallel with others.
func newSite(t *testing.T, o web.Options) *site {
	t.Helper()
	t.Parallel()
	return serialSite(t, o)
}

func serialSite(t testing.TB, o web.Options) *site {
	t.Helper()
	cfg := testspace.Config(t, redistest.Shared(t))
	m := testspace.Manager(t, cfg)
	s := &site{t, nil, cfg, m, admin.New(m), testspace.Connect(t, cfg), webtest.Tokens(t, m)}
	s.Handler = s.dashboard(o)
	return s
}

// dashboard returns a dashboard that remembers nothing, and whose pages wait as long as Redis needs.
func (s *site) dashboard(o web.Options) http.Handler {
	o.Log, o.Timeout = slog.New(slog.NewTextHandler(s.Output(), nil)), time.Hour
	return web.New(s.manager, o)
}

// A browser keeps the cookies of a session, as a browser does, but follows no redirects.
type browser struct {
	*site
	cookies map[string]string
	csrf    string
}

// An answer is the answer to a request.
type answer struct {
	*http.Response
	text string
}

func (s *site) browser() *browser { return &browser{s, map[string]string{}, ""} }

// as returns a browser that is logged in with the token of a role.
func (s *site) as(role access.Role) *browser {
	s.Helper()
	b := s.browser()
	got := b.post("/ui/login", url.Values{"token": {s.tokens[role]}})
	expect.MustEqual(s, got.StatusCode, http.StatusSeeOther, "log in as", role, got.text)
	return b
}

func (b *browser) do(r *http.Request, headers ...string) answer {
	b.Helper()
	r.Host = "localhost"
	webtest.Set(r, "", headers...)
	for name, value := range b.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	w := httptest.NewRecorder()
	b.ServeHTTP(w, r)
	for _, c := range w.Result().Cookies() {
		if b.cookies[c.Name] = c.Value; c.MaxAge < 0 {
			delete(b.cookies, c.Name)
		}
	}
	text := expect.Result(io.ReadAll(w.Result().Body)).Value(b)
	if found := csrfField.FindStringSubmatch(string(text)); found != nil {
		b.csrf = found[1]
	}
	return answer{w.Result(), string(text)}
}

var csrfField = regexp.MustCompile(`name="csrf" value="([0-9a-f]{32})"`)

func (b *browser) get(path string, headers ...string) answer {
	b.Helper()
	return b.do(httptest.NewRequest(http.MethodGet, path, nil), headers...)
}

// post sends a form, with the text of the session that the last page had.
func (b *browser) post(path string, form url.Values, headers ...string) answer {
	b.Helper()
	if form == nil {
		form = url.Values{}
	}
	if !form.Has("csrf") && b.csrf != "" {
		form.Set("csrf", b.csrf)
	}
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return b.do(r, headers...)
}

// page reads a page, and fails the test if its status differs.
func (b *browser) page(path string, status int) string {
	b.Helper()
	got := b.get(path)
	expect.Equal(b, got.StatusCode, status, path, got.text)
	return got.text
}
