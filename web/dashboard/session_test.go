package dashboard_test

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/access"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/internal/userfile"
	"github.com/tdf-framework/tdf/web"
)

func TestLogin(t *testing.T) {
	t.Parallel()
	s := newSite(t, web.Options{})
	b := s.browser()
	got := b.get("/ui/workers?x=1")
	if got.StatusCode != http.StatusSeeOther || got.Header.Get("Location") != "/ui/login?next=%2Fui%2Fworkers%3Fx%3D1" {
		t.Fatal(got.StatusCode, got.Header)
	}
	got = b.post("/ui/login", url.Values{"token": {" " + s.tokens[access.Viewer] + "\n"}, "next": {"/ui/workers?x=1"}})
	if got.StatusCode != http.StatusSeeOther || got.Header.Get("Location") != "/ui/workers?x=1" {
		t.Fatal(got.StatusCode, got.Header, got.text)
	}
	cookie := got.Cookies()[0]
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode || cookie.Path != "/" || cookie.MaxAge <= 0 || strings.Contains(cookie.Value, s.tokens[access.Viewer]) {
		t.Errorf("%+v", cookie)
	}
	if text := b.page("/ui/workers", 200); !strings.Contains(text, "viewer (viewer)") {
		t.Error(text)
	}
	if got := b.post("/ui/logout", url.Values{"csrf": {"x"}}); got.StatusCode != 403 {
		t.Error("log-out without the text of the session:", got.StatusCode)
	}
	old := map[string]string{cookie.Name: cookie.Value}
	if got := b.post("/ui/logout", nil); got.StatusCode != http.StatusSeeOther || len(b.cookies) != 0 {
		t.Error(got.StatusCode, b.cookies)
	}
	b.cookies = old
	b.page("/ui/workers", http.StatusSeeOther)
}

func TestRefusedLogins(t *testing.T) {
	t.Parallel()
	s := newSite(t, web.Options{})
	for name, form := range map[string]url.Values{
		"nothing":       {},
		"another token": {"token": {s.tokens[access.Viewer] + "A"}},
		"a worker":      {"token": {s.tokens[access.Worker]}},
		"a key":         {"key": {"token.viewer.AAAAAAAAAAAAAAAAAAAAAAAAAA"}},
		"a hostile key": {"key": {"token..\x00."}},
		"large":         {"token": {strings.Repeat("x", 100_000)}},
	} {
		b := s.browser()
		if got := b.post("/ui/login", form); got.StatusCode < 400 || got.StatusCode >= 500 || len(b.cookies) != 0 || !strings.Contains(got.text, `role="alert"`) {
			t.Errorf("%s: %d %v", name, got.StatusCode, b.cookies)
		}
	}
	b := s.browser()
	for range 20 {
		b.post("/ui/login", url.Values{"token": {"x"}})
	}
	if got := b.post("/ui/login", url.Values{"token": {s.tokens[access.Viewer]}}); got.StatusCode != http.StatusTooManyRequests {
		t.Errorf("after many tries: %d", got.StatusCode)
	}
}

// A session ends with its token, also if another token gets the name.
func TestSessionEndsWithItsToken(t *testing.T) {
	t.Parallel()
	s := newSite(t, web.Options{})
	b := s.as(access.Viewer)
	b.page("/ui/workers", 200)
	if err := s.admin.RemoveToken(t.Context(), "viewer"); err != nil {
		t.Fatal(err)
	}
	b.page("/ui/workers", http.StatusSeeOther)
	if _, err := s.admin.AddToken(t.Context(), access.Token{Name: "viewer", Role: access.Operator}); err != nil {
		t.Fatal(err)
	}
	b.page("/ui/workers", http.StatusSeeOther)
	if got := b.get("/ui/workers", "Accept: text/event-stream"); got.StatusCode != http.StatusUnauthorized {
		t.Error("a stream:", got.StatusCode)
	}
}

// Redis holds no text with which somebody could continue a session, and not more than 100 sessions of a token.
func TestSessionsInRedis(t *testing.T) {
	t.Parallel()
	s := newSite(t, web.Options{})
	first := s.as(access.Viewer)
	ctx, client := t.Context(), testspace.Client(t, s.cfg)
	token, err := s.admin.Authenticate(ctx, s.tokens[access.Viewer])
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{}
	for range access.MaxSessions {
		text, err := s.admin.OpenSession(ctx, token)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, text)
	}
	stored, err := client.HGetAll(ctx, s.cfg.Namespace+":sessions:token.viewer").Result()
	if err != nil || len(stored) != access.MaxSessions {
		t.Error(len(stored), err)
	}
	for digest, value := range stored {
		for _, text := range texts {
			if secret := text[strings.LastIndexByte(text, '.')+1:]; strings.Contains(digest+value, secret) {
				t.Fatal("Redis holds the secret text of a session")
			}
		}
	}
	first.page("/ui/workers", http.StatusSeeOther) // the oldest session made room
	if life := client.TTL(ctx, s.cfg.Namespace+":sessions:token.viewer").Val(); life <= 0 || life > access.SessionLife {
		t.Errorf("sessions expire after %v", life)
	}
}

// A link logs in once. A page or a program that only looks at the link before does not use it up.
func TestLoginLink(t *testing.T) {
	t.Parallel()
	s := newSite(t, web.Options{})
	key, err := s.admin.AddLogin(t.Context(), "operator", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	b := s.browser()
	for range 3 {
		if got := b.get("/ui/login?key=" + key); got.StatusCode != 200 || len(b.cookies) != 0 || !strings.Contains(got.text, key) {
			t.Fatal(got.StatusCode, got.text)
		}
	}
	if got := b.post("/ui/login", url.Values{"key": {key}}); got.StatusCode != http.StatusSeeOther {
		t.Fatal(got.StatusCode, got.text)
	}
	b.page("/ui/workers", 200)
	if got := s.browser().post("/ui/login", url.Values{"key": {key}}); got.StatusCode != 403 {
		t.Error("a second time:", got.StatusCode)
	}
	if key, err = s.admin.AddLogin(t.Context(), "operator", time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := s.admin.RemoveToken(t.Context(), "operator"); err != nil {
		t.Fatal(err)
	}
	if got := s.browser().post("/ui/login", url.Values{"key": {key}}); got.StatusCode != 403 {
		t.Error("without its token:", got.StatusCode)
	}
	if _, err := s.admin.AddLogin(t.Context(), "none", time.Hour); err == nil {
		t.Error("a link for a token that does not exist")
	}
}

// Over TLS, only a cookie that no other host can set counts.
func TestCookies(t *testing.T) {
	t.Parallel()
	s := newSite(t, web.Options{})
	b := s.as(access.Viewer)
	if b.cookies["tdf_"] == "" {
		t.Fatal(b.cookies)
	}
	over := func(b *browser) answer {
		r := httptest.NewRequest("GET", "/ui/workers", nil)
		r.TLS = &tls.ConnectionState{}
		return b.do(r)
	}
	if got := over(b); got.StatusCode != http.StatusSeeOther {
		t.Error("a plain cookie over TLS:", got.StatusCode)
	}
	r := httptest.NewRequest("POST", "/ui/login", strings.NewReader(url.Values{"token": {s.tokens[access.Viewer]}}.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.TLS = &tls.ConnectionState{}
	safe := s.browser()
	if got := safe.do(r); !got.Cookies()[0].Secure || got.Cookies()[0].Name != "__Host-tdf" {
		t.Error(got.Cookies())
	}
	if got := over(safe); got.StatusCode != 200 {
		t.Error(got.StatusCode)
	}
	behind := s.browser() // a proxy that has TLS
	if got := behind.post("/ui/login", url.Values{"token": {s.tokens[access.Viewer]}}, "Origin: https://localhost"); len(got.Cookies()) != 1 || !got.Cookies()[0].Secure {
		t.Error(got.StatusCode, got.Cookies())
	}
	for _, path := range []string{"/api/v1/tasks", "/metrics"} {
		if got := b.get(path); got.StatusCode != http.StatusUnauthorized {
			t.Errorf("the API accepts a cookie at %s: %d", path, got.StatusCode)
		}
	}
}

// Other pages cannot act with the session of their visitor, nor send him elsewhere.
func TestForgedRequests(t *testing.T) {
	t.Parallel()
	s := newSite(t, web.Options{Origins: []string{"https://lab.example.org"}})
	b := s.as(access.Operator)
	b.page("/ui/workers", 200)
	for name, headers := range map[string][]string{
		"another origin":    {"Origin: https://evil.example"},
		"a known origin":    {"Origin: https://lab.example.org"},
		"a null origin":     {"Origin: null"},
		"another port":      {"Origin: http://localhost:81"},
		"another site":      {"Sec-Fetch-Site: cross-site"},
		"the same site":     {"Sec-Fetch-Site: same-site"},
		"a site and origin": {"Sec-Fetch-Site: cross-site", "Origin: http://localhost"},
	} {
		for _, path := range []string{"/ui/workers/w/drain", "/ui/login", "/ui/logout"} {
			if got := b.post(path, nil, headers...); got.StatusCode != http.StatusForbidden {
				t.Errorf("%s of %s: %d", path, name, got.StatusCode)
			}
		}
	}
	for _, csrf := range []string{"", "x", strings.Repeat("0", 32)} {
		if got := b.post("/ui/workers/w/drain", url.Values{"csrf": {csrf}}); got.StatusCode != http.StatusForbidden {
			t.Errorf("with the text %q: %d", csrf, got.StatusCode)
		}
	}
	if got := b.post("/ui/workers/w/drain", nil); got.StatusCode != http.StatusNotFound {
		t.Errorf("a form of the page: %d", got.StatusCode)
	}
	for _, next := range []string{"https://evil.example", "//evil.example", "/\\evil.example", "/ui\\..\\x", "javascript:alert(1)", "/uix", "/docs", "http:/ui", "/ui/\n//x"} {
		got := s.browser().post("/ui/login", url.Values{"token": {s.tokens[access.Viewer]}, "next": {next}})
		if got.StatusCode == http.StatusSeeOther && got.Header.Get("Location") != "/ui" {
			t.Errorf("%q leads to %q", next, got.Header.Get("Location"))
		}
	}
}

// A stream ends when its session ends.
func TestStreamEndsWithItsSession(t *testing.T) {
	t.Parallel()
	s := newSite(t, web.Options{})
	b := s.as(access.Viewer)
	b.page("/ui/workers", 200)
	server := httptest.NewServer(s)
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", server.URL+"/ui/workers", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	r.AddCookie(&http.Cookie{Name: "tdf_" + r.URL.Port(), Value: b.cookies["tdf_"]})
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	buffer := make([]byte, 64<<10)
	if n, err := got.Body.Read(buffer); err != nil || got.StatusCode != 200 || !strings.Contains(string(buffer[:n]), "retry:") {
		t.Fatal(got.StatusCode, err)
	}
	b.post("/ui/logout", nil)
	for err == nil {
		_, err = got.Body.Read(buffer)
	}
}

// A user logs in with a password, and the log of a task names the user. Another password or no such user ends the sessions.
func TestUserLogin(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "users")
	if err := userfile.Add(path, "ada", access.Operator, "correct horse"); err != nil {
		t.Fatal(err)
	}
	s := newSite(t, web.Options{Users: path})
	s.open(1, "")
	b := s.browser()
	if text := b.page("/ui/login", 200); !strings.Contains(text, `name="password"`) {
		t.Error(text)
	}
	if got := b.post("/ui/login", url.Values{"user": {"ada"}, "password": {"wrong horse"}}); got.StatusCode != 403 || strings.Contains(got.text, "wrong horse") {
		t.Error(got.StatusCode, got.text)
	}
	if got := b.post("/ui/login", url.Values{"user": {"ada"}, "password": {"correct horse"}}); got.StatusCode != http.StatusSeeOther {
		t.Fatal(got.StatusCode, got.text)
	}
	b.page("/ui/tasks/1", 200)
	if got := b.post("/ui/tasks/1/cancel", nil); got.StatusCode != http.StatusSeeOther || !strings.Contains(testspace.Read(t, s.store, 1).Log, "user ada") {
		t.Error(got.StatusCode, testspace.Read(t, s.store, 1).Log)
	}
	if err := userfile.Remove(path, "ada"); err != nil {
		t.Fatal(err)
	}
	b.page("/ui/tasks/1", http.StatusSeeOther)
	if got := s.as(access.Viewer).get("/ui"); got.StatusCode != 200 {
		t.Error("a token beside users:", got.StatusCode)
	}
}
