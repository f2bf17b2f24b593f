package web

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/leaktest"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/testlog"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/internal/webtest"
	"github.com/tdf-framework/tdf/manager"
)

func TestMain(m *testing.M) { os.Exit(leaktest.M{M: m}.Run()) }

// A site is an API in a test, with a token for each role.
type site struct {
	testing.TB
	*api
	cfg    config.Manager
	redis  *redis.Client
	tokens map[access.Role]string
}

// newSite returns a site for a test that runs in parallel with others.
func newSite(t *testing.T, o Options) *site {
	t.Helper()
	t.Parallel()
	return siteOn(t, redistest.Shared(t), o)
}

// siteOn returns a site on a Redis. Without Options.Timeout, its calls wait as long as Redis needs.
func siteOn(t testing.TB, addr string, o Options) *site {
	t.Helper()
	o.Timeout = cmp.Or(o.Timeout, time.Hour)
	if o.Log == nil {
		o.Log = testlog.Of(t)
	}
	cfg := testspace.Config(t, addr)
	m := testspace.Manager(t, cfg)
	s := &site{t, newAPI(m, o), cfg, testspace.Client(t, cfg), webtest.Tokens(t, m)}
	for _, text := range s.tokens {
		expect.Result(s.admin.Authenticate(t.Context(), text)).OK(t) // notes the first use
	}
	return s
}

// An answer is the answer to a call.
type answer struct {
	*http.Response
	text string
}

// call makes a call with a token. Each header is a line such as "If-Match: x".
func (s *site) call(token, method, path, body string, headers ...string) answer {
	s.Helper()
	return s.do(webtest.Call(s.Context(), token, method, path, body, headers...))
}

func (s *site) do(r *http.Request) answer {
	s.Helper()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	w := &firstPart{httptest.NewRecorder(), cancel}
	s.ServeHTTP(w, r.WithContext(ctx))
	text := expect.Result(io.ReadAll(w.Result().Body)).Value(s)
	return answer{w.Result(), string(text)}
}

// A firstPart records the first part of a stream. Then the client goes away.
type firstPart struct {
	*httptest.ResponseRecorder
	leave func()
}

func (p *firstPart) Flush() {
	if p.Header().Get("Content-Type") != "application/json" { // such an answer has one part
		p.leave()
	}
}

// as makes a call with the token of a role, and fails the test if the status differs.
func (s *site) as(role access.Role, status int, method, path, body string, headers ...string) answer {
	s.Helper()
	got := s.call(s.tokens[role], method, path, body, headers...)
	expect.Equal(s, got.StatusCode, status, role, method, path, got.text)
	return got
}

// world returns everything in the namespace, except the calls of clients, what they count, and wake tokens.
func (s *site) world() map[string]string {
	s.Helper()
	all := map[string]string{}
	ctx := s.Context()
	keys := expect.Result(s.redis.Keys(ctx, s.cfg.Namespace+":*").Result()).Value(s)
	for _, key := range keys {
		switch name, _, _ := strings.Cut(strings.TrimPrefix(key, s.cfg.Namespace+":"), ":"); name {
		case "calls", "activity", "counted", "tokens_used": // the last use of a token is written once a minute
			continue
		case "wake": // a claim that has waited may give its wake token back
			continue
		}
		commands := map[string][]any{
			"string": {"GET", key}, "hash": {"HGETALL", key}, "set": {"SMEMBERS", key}, "list": {"LRANGE", key, 0, -1},
			"zset": {"ZRANGE", key, 0, -1, "WITHSCORES"}, "stream": {"XRANGE", key, "-", "+"},
		}
		command := commands[s.redis.Type(ctx, key).Val()]
		if command == nil {
			continue // the key has expired
		}
		value, err := s.redis.Do(ctx, command...).Result()
		if err != nil {
			expect.MustEqual[any](s, err, redis.Nil)
		}
		if list, ok := value.([]any); ok && (command[0] == "HGETALL" || command[0] == "SMEMBERS") {
			words := make([]string, len(list))
			for i := range list {
				words[i] = fmt.Sprint(list[i])
			}
			slices.Sort(words) // Redis may change the order of a hash
			value = words
		}
		all[key] = fmt.Sprint(value)
	}
	return all
}

func (s *site) open(d ...manager.Definition) {
	s.Helper()
	expect.Result(s.manager.Open(s.Context(), d...)).OK(s)
}
