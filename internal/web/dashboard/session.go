package dashboard

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"net"
	"net/http"
	"strings"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/task"
)

// visit returns the visit of a logged-in user. The error is [access.ErrLoggedOut] if the browser has no session.
func (d *Dashboard) visit(r *http.Request) (*visit, error) {
	text := d.sessionOf(r)
	ctx, cancel := context.WithTimeout(r.Context(), d.Timeout)
	defer cancel()
	user, err := d.admin.Session(ctx, text, d.user)
	if err != nil {
		return nil, err
	}
	m, err := d.host.Act(r, user, Login{text + " " + string(user.Role), func(ctx context.Context) bool {
		now, err := d.admin.Session(ctx, text, d.user)
		if err != nil {
			return !errors.Is(err, access.ErrLoggedOut)
		}
		return now.Role == user.Role
	}})
	if err != nil {
		return nil, err
	}
	return &visit{
		dashboard: d, request: r, query: r.URL.Query(), rights: user.Role.Rights(), owner: user.Owner(),
		user: user, session: text, manager: m,
	}, nil
}

// user returns the token that stands for a user of the user file.
func (d *Dashboard) user(name string) (access.Token, bool) {
	if d.users == nil {
		return access.Token{}, false
	}
	return d.users.Find(name)
}

// The names of the cookie. A browser accepts the first one only over TLS and for this host, so that no other host can
// set it. All ports of a host share their cookies, so the second one has the port.
const (
	secureCookie = "__Host-tdf"
	plainCookie  = "tdf_"
)

func plainCookieOf(r *http.Request) string {
	_, port, _ := net.SplitHostPort(r.Host)
	return plainCookie + port
}

// overTLS reports whether a browser has sent a request over TLS, to this server or to a proxy. A client can lie about
// the headers, but only in order to lose its plain cookie.
func (d *Dashboard) overTLS(r *http.Request) bool {
	host, public := strings.CutPrefix(d.Public, "https://")
	proto, _, _ := strings.Cut(r.Header.Get("X-Forwarded-Proto"), ",") // that of the browser comes first
	return r.TLS != nil || public && strings.EqualFold(r.Host, host) || strings.EqualFold(proto, "https") ||
		strings.HasPrefix(r.Header.Get("Origin"), "https://")
}

// sessionOf returns the secret text of the session in the cookies of a request.
func (d *Dashboard) sessionOf(r *http.Request) string {
	for _, name := range []string{secureCookie, plainCookieOf(r)} {
		if c, err := r.Cookie(name); err == nil && (name == secureCookie || !d.overTLS(r)) {
			return c.Value
		}
	}
	return ""
}

// setSession sets the cookie of a session, or removes it if the text is empty.
func (d *Dashboard) setSession(w http.ResponseWriter, r *http.Request, text string) {
	c := http.Cookie{
		Name: plainCookieOf(r), Value: text, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode,
		MaxAge: int(access.SessionLife.Seconds()),
	}
	if d.overTLS(r) {
		c.Name, c.Secure = secureCookie, true
	}
	if text == "" {
		c.MaxAge = -1
	}
	http.SetCookie(w, &c)
}

// csrfOf returns the text that the forms of a session contain. Another site cannot know it.
func csrfOf(session string) string {
	sum := sha256.Sum256([]byte("csrf " + session))
	return hex.EncodeToString(sum[:16])
}

func sameText(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// login is what the login page shows.
type loginForm struct {
	Next, Key, Problem string
	Users              bool
}

func (d *Dashboard) showLogin(w http.ResponseWriter, r *http.Request) {
	d.writeLogin(w, http.StatusOK, loginForm{Next: local(r.URL.Query().Get("next")), Key: r.URL.Query().Get("key")})
}

func (d *Dashboard) writeLogin(w http.ResponseWriter, status int, f loginForm) {
	f.Users = d.users != nil
	d.write(w, status, nil, &view{title: "Log in", main: partOf("login", f)}, false)
}

// login begins a session with a token, with the key of a link, or with the name and the password of a user.
func (d *Dashboard) login(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), d.Timeout)
	defer cancel()
	session, err := d.openSession(ctx, r)
	if err != nil {
		p := d.host.Problem(r, err)
		d.writeLogin(w, p.Status, loginForm{Next: local(r.PostFormValue("next")), Problem: p.Detail})
		return
	}
	d.setSession(w, r, session)
	http.Redirect(w, r, local(r.PostFormValue("next")), http.StatusSeeOther)
}

func (d *Dashboard) openSession(ctx context.Context, r *http.Request) (string, error) {
	if err := d.host.MayTry(r); err != nil {
		return "", err
	}
	t, err := d.credentials(ctx, r)
	if err != nil {
		return "", err
	}
	if !toSee(t.Role.Rights()) {
		return "", task.NewError(task.CodeForbidden,
			"a token of a worker cannot see tasks, so it cannot use the dashboard")
	}
	return d.admin.OpenSession(ctx, t)
}

func (d *Dashboard) credentials(ctx context.Context, r *http.Request) (access.Token, error) {
	if key := r.PostFormValue("key"); key != "" {
		t, err := d.admin.UseLogin(ctx, key)
		if errors.Is(err, access.ErrLoggedOut) {
			err = task.NewError(task.CodeForbidden, "the link was used before, or is too "+
				"old: get another with tdf login, or log in with a token")
		}
		return t, err
	}
	if name := r.PostFormValue("user"); name != "" && d.users != nil {
		return d.users.Authenticate(ctx, name, r.PostFormValue("password"))
	}
	return d.admin.Authenticate(ctx, strings.TrimSpace(r.PostFormValue("token")))
}

// logout ends the session. Like every form, it has the text of the session, so that no other page logs the user out.
func (d *Dashboard) logout(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), d.Timeout)
	defer cancel()
	text := d.sessionOf(r)
	if text != "" && !sameText(r.PostFormValue("csrf"), csrfOf(text)) {
		d.fail(w, r, nil, errStaleForm)
		return
	}
	if err := d.admin.EndSession(ctx, text); err != nil {
		d.fail(w, r, nil, err)
		return
	}
	d.setSession(w, r, "")
	http.Redirect(w, r, Base+"/login", http.StatusSeeOther)
}
