package dashboard_test

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/internal/userfile"
	"github.com/tdf-framework/tdf/internal/web"
)

func TestLogin(t *testing.T) {
	s := newSite(t, web.Options{})
	b := s.browser()
	got := b.get("/ui/workers?x=1")
	expect.MustEqual(t, got.StatusCode, http.StatusSeeOther)
	expect.MustEqual(t, got.Header.Get("Location"), "/ui/login?next=%2Fui%2Fworkers%3Fx%3D1")
	got = b.post("/ui/login", url.Values{"token": {" " + s.tokens[access.Viewer] + "\n"}, "next": {"/ui/workers?x=1"}})
	expect.MustEqual(t, got.StatusCode, http.StatusSeeOther)
	expect.MustEqual(t, got.Header.Get("Location"), "/ui/workers?x=1")
	cookie := got.Cookies()[0]
	expect.True(t, cookie.HttpOnly, cookie)
	expect.Equal(t, cookie.SameSite, http.SameSiteLaxMode)
	expect.Equal(t, cookie.Path, "/")
	expect.Compare(t, cookie.MaxAge, ">", 0)
	expect.NotContains(t, cookie.Value, s.tokens[access.Viewer])
	expect.Contains(t, b.page("/ui/workers", 200), "viewer (viewer)")
	expect.Equal(t, b.post("/ui/logout", url.Values{"csrf": {"x"}}).StatusCode, 403, "log-out without the text of the session")
	old := map[string]string{cookie.Name: cookie.Value}
	got = b.post("/ui/logout", nil)
	expect.Equal(t, got.StatusCode, http.StatusSeeOther)
	expect.Len(t, b.cookies, 0)
	b.cookies = old
	b.page("/ui/workers", http.StatusSeeOther)
}

func TestRefusedLogins(t *testing.T) {
	s := newSite(t, web.Options{})
	for name, form := range map[string]url.Values{
		"nothing":       {},
		"another token": {"token": {s.tokens[access.Viewer] + "A"}},
		"a worker":      {"token": {s.tokens[access.Worker]}},
		"a key":         {"key": {"token.viewer.AAAAAAAAAAAAAAAAAAAAAAAAAA"}},
		"a hostile key": {"key": {"token..\x00."}},
		"large":         {"token": {strings.Repeat("x", 10_000)}},
	} {
		b := s.browser()
		got := b.post("/ui/login", form)
		expect.Compare(t, got.StatusCode, ">=", 400, name)
		expect.Compare(t, got.StatusCode, "<", 500, name)
		expect.Len(t, b.cookies, 0, name)
		expect.Contains(t, got.text, `role="alert"`, name)
	}
}

// A session ends with its token, also if another token gets the name.
func TestSessionEndsWithItsToken(t *testing.T) {
	s := newSite(t, web.Options{})
	b := s.as(access.Viewer)
	b.page("/ui/workers", 200)
	expect.NoError(t, s.admin.RemoveToken(t.Context(), "viewer"))
	b.page("/ui/workers", http.StatusSeeOther)
	expect.Result(s.admin.AddToken(t.Context(), access.Token{Name: "viewer", Role: access.Operator})).OK(t)
	b.page("/ui/workers", http.StatusSeeOther)
	expect.Equal(t, b.get("/ui/workers", "Accept: text/event-stream").StatusCode, http.StatusUnauthorized, "a stream")
}

// Redis holds no text with which somebody could continue a session, and not more than 100 sessions of a token.
func TestSessionsInRedis(t *testing.T) {
	s := newSite(t, web.Options{})
	first := s.as(access.Viewer)
	ctx, client := t.Context(), testspace.Client(t, s.cfg)
	token := expect.Result(s.admin.Authenticate(ctx, s.tokens[access.Viewer])).Value(t)
	texts := []string{}
	for range access.MaxSessions {
		text := expect.Result(s.admin.OpenSession(ctx, token)).Value(t)
		texts = append(texts, text)
	}
	stored := expect.Result(client.HGetAll(ctx, s.cfg.Namespace+":sessions:token.viewer").Result()).Value(t)
	expect.Len(t, stored, access.MaxSessions)
	for digest, value := range stored {
		for _, text := range texts {
			secret := text[strings.LastIndexByte(text, '.')+1:]
			expect.MustTrue(t, !strings.Contains(digest+value, secret), "Redis holds the secret text of a session")
		}
	}
	first.page("/ui/workers", http.StatusSeeOther) // the oldest session made room
	life := client.TTL(ctx, s.cfg.Namespace+":sessions:token.viewer").Val()
	expect.Compare(t, life, ">", 0)
	expect.Compare(t, life, "<=", access.SessionLife)
}

// A link logs in once. A page or a program that only looks at the link before does not use it up.
func TestLoginLink(t *testing.T) {
	s := newSite(t, web.Options{})
	key, err := s.admin.AddLogin(t.Context(), "operator", time.Hour)
	expect.NoError(t, err)
	b := s.browser()
	for range 3 {
		got := b.get("/ui/login?key=" + key)
		expect.MustEqual(t, got.StatusCode, 200)
		expect.MustLen(t, b.cookies, 0)
		expect.Contains(t, got.text, key)
	}
	got := b.post("/ui/login", url.Values{"key": {key}})
	expect.MustEqual(t, got.StatusCode, http.StatusSeeOther, got.text)
	b.page("/ui/workers", 200)
	expect.Equal(t, s.browser().post("/ui/login", url.Values{"key": {key}}).StatusCode, 403, "a second time")
	key, err = s.admin.AddLogin(t.Context(), "operator", time.Hour)
	expect.NoError(t, err)
	expect.NoError(t, s.admin.RemoveToken(t.Context(), "operator"))
	expect.Equal(t, s.browser().post("/ui/login", url.Values{"key": {key}}).StatusCode, 403, "without its token")
	_, err = s.admin.AddLogin(t.Context(), "none", time.Hour)
	expect.True(t, err != nil, "a link for a token that does not exist")
}

// Over TLS, only a cookie that no other host can set counts.
func TestCookies(t *testing.T) {
	s := newSite(t, web.Options{})
	b := s.as(access.Viewer)
	expect.MustTrue(t, b.cookies["tdf_"] != "", b.cookies)
	over := func(b *browser) answer {
		r := httptest.NewRequest("GET", "/ui/workers", nil)
		r.TLS = &tls.ConnectionState{}
		return b.do(r)
	}
	expect.Equal(t, over(b).StatusCode, http.StatusSeeOther, "a plain cookie over TLS")
	r := httptest.NewRequest("POST", "/ui/login", strings.NewReader(url.Values{"token": {s.tokens[access.Viewer]}}.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.TLS = &tls.ConnectionState{}
	safe := s.browser()
	cookie := safe.do(r).Cookies()[0]
	expect.True(t, cookie.Secure, cookie)
	expect.Equal(t, cookie.Name, "__Host-tdf")
	expect.Equal(t, over(safe).StatusCode, 200)
	behind := s.browser() // a proxy that has TLS
	cookies := behind.post("/ui/login", url.Values{"token": {s.tokens[access.Viewer]}}, "Origin: https://localhost").Cookies()
	expect.MustLen(t, cookies, 1)
	expect.True(t, cookies[0].Secure, cookies)
	public := *s
	public.Handler = s.dashboard(web.Options{Public: "https://localhost"})
	for with, want := range map[*browser]int{b: http.StatusSeeOther, safe: 200} {
		known := browser{&public, with.cookies, ""}
		expect.Equal(t, known.get("/ui/workers").StatusCode, want, "at a known address", with.cookies)
		for proto, want := range map[string]int{"https": want, "HTTPS, http": want, "http": 200} {
			got := with.get("/ui/workers", "X-Forwarded-Proto: "+proto)
			expect.Equal(t, got.StatusCode, want, "behind a proxy", proto, with.cookies)
		}
	}
	for _, path := range []string{"/api/v1/tasks", "/metrics"} {
		expect.Equal(t, b.get(path).StatusCode, http.StatusUnauthorized, "the API accepts a cookie at", path)
	}
}

// Other pages cannot act with the session of their visitor, nor send him elsewhere.
func TestForgedRequests(t *testing.T) {
	s := newSite(t, web.Options{})
	b := s.as(access.Operator)
	b.page("/ui/workers", 200)
	for name, headers := range map[string][]string{
		"another origin":    {"Origin: https://evil.example"},
		"a null origin":     {"Origin: null"},
		"another port":      {"Origin: http://localhost:81"},
		"another site":      {"Sec-Fetch-Site: cross-site"},
		"the same site":     {"Sec-Fetch-Site: same-site"},
		"a site and origin": {"Sec-Fetch-Site: cross-site", "Origin: http://localhost"},
	} {
		for _, path := range []string{"/ui/workers/w/drain", "/ui/login", "/ui/logout"} {
			expect.Equal(t, b.post(path, nil, headers...).StatusCode, http.StatusForbidden, path, "of", name)
		}
	}
	for _, csrf := range []string{"", "x", strings.Repeat("0", 32)} {
		expect.Equal(t, b.post("/ui/workers/w/drain", url.Values{"csrf": {csrf}}).StatusCode, http.StatusForbidden, "with the text", csrf)
	}
	expect.Equal(t, b.post("/ui/workers/w/drain", nil).StatusCode, http.StatusNotFound, "a form of the page")
	for _, next := range []string{"https://evil.example", "//evil.example", "/\\evil.example", "/ui\\..\\x", "javascript:alert(1)", "/uix", "/docs", "http:/ui", "/ui/\n//x"} {
		got := s.browser().post("/ui/login", url.Values{"token": {s.tokens[access.Viewer]}, "next": {next}})
		if got.StatusCode == http.StatusSeeOther {
			expect.Equal(t, got.Header.Get("Location"), "/ui", next)
		}
	}
}

// A stream ends when its session ends, and when its user gets another role.
func TestStreamEndsWithItsSession(t *testing.T) {
	users := filepath.Join(t.TempDir(), "users")
	s := newSite(t, web.Options{Users: users})
	s.open(1, "")
	server := httptest.NewServer(s)
	defer server.Close()
	user := func(name string) *browser {
		expect.NoError(t, userfile.Add(users, name, access.Operator, "correct horse"))
		b := s.browser()
		b.post("/ui/login", url.Values{"user": {name}, "password": {"correct horse"}})
		return b
	}
	browsers := map[string]*browser{
		"log out": s.as(access.Operator), "remove": user("removed"), "demote": user("demoted"),
	}
	ended := map[string]chan error{}
	for name, b := range browsers {
		b.page("/ui/workers", 200)
		for _, path := range []string{"/ui/workers", "/ui/api/v1/events", "/ui/api/v1/tasks/1/output?follow=true"} {
			r := expect.Result(http.NewRequestWithContext(t.Context(), "GET", server.URL+path, nil)).Value(t)
			r.Header.Set("Accept", "text/event-stream")
			r.AddCookie(&http.Cookie{Name: "tdf_" + r.URL.Port(), Value: b.cookies["tdf_"]})
			got := expect.Result(http.DefaultClient.Do(r)).Value(t)
			defer got.Body.Close()
			expect.MustEqual(t, got.StatusCode, 200, name, path)
			end := make(chan error, 1)
			ended[name+": "+path] = end
			go func() {
				_, err := io.Copy(io.Discard, got.Body)
				end <- err
			}()
		}
	}
	browsers["log out"].post("/ui/logout", nil)
	expect.NoError(t, userfile.Remove(users, "removed"))
	text := string(expect.Result(os.ReadFile(users)).Value(t))
	text = strings.Replace(text, "demoted operator", "demoted submitter", 1)
	expect.NoError(t, os.WriteFile(users, []byte(text), 0o600))
	for name, end := range ended {
		expect.Fails(t, <-end, "", name)
	}
}

// A user logs in with a password, and the log of a task names the user. Another password or no such user ends the sessions.
func TestUserLogin(t *testing.T) {
	path := filepath.Join(t.TempDir(), "users")
	expect.NoError(t, userfile.Add(path, "ada", access.Operator, "correct horse"))
	s := newSite(t, web.Options{Users: path})
	s.open(1, "")
	b := s.browser()
	expect.Contains(t, b.page("/ui/login", 200), `name="password"`)
	got := b.post("/ui/login", url.Values{"user": {"ada"}, "password": {"wrong horse"}})
	expect.Equal(t, got.StatusCode, 403)
	expect.NotContains(t, got.text, "wrong horse")
	got = b.post("/ui/login", url.Values{"user": {"ada"}, "password": {"correct horse"}})
	expect.MustEqual(t, got.StatusCode, http.StatusSeeOther, got.text)
	b.page("/ui/tasks/1", 200)
	expect.Equal(t, b.post("/ui/tasks/1/cancel", nil).StatusCode, http.StatusSeeOther)
	expect.Contains(t, testspace.Read(t, s.store, 1).Log, "user ada")
	expect.NoError(t, userfile.Remove(path, "ada"))
	b.page("/ui/tasks/1", http.StatusSeeOther)
	expect.Equal(t, s.as(access.Viewer).get("/ui").StatusCode, 200, "a token beside users")
}
