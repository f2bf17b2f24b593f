package accounts

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/conntest"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

func newToken(t testing.TB, name string) (access.Token, string) {
	t.Helper()
	made, text, err := access.New(access.Token{Name: name, Role: access.Worker, Queues: []string{"q"}})
	expect.NoError(t, err)
	return made, text
}

func TestTokens(t *testing.T) {
	conntest.OnEach(t, func(t *testing.T, c *conn.Conn) {
		s := Accounts{c}
		a, text := newToken(t, "a")
		b, _ := newToken(t, "b")
		expect.NoError(t, s.AddToken(t.Context(), b))
		expect.NoError(t, s.AddToken(t.Context(), a))
		other, _ := newToken(t, "a")
		before := conntest.Dump(t, s.Conn)
		if err := s.AddToken(t.Context(), other); !errors.Is(err, access.ErrTaken) || !strings.HasPrefix(err.Error(), "add token a: another") {
			t.Errorf("a name twice: %v", err)
		}
		for _, name := range []string{"c", "", "a\x00", strings.Repeat("x", 1000)} {
			expect.FailsWith(t, s.RemoveToken(t.Context(), name), access.ErrNoToken, name)
			if _, _, err := s.Token(t.Context(), name); !errors.Is(err, access.ErrNoToken) {
				t.Errorf("reading %.20q: %v", name, err)
			}
			expect.NoError(t, s.NoteTokenUse(t.Context(), name, 1))
		}
		expect.Equal(t, cmp.Diff(before, conntest.Dump(t, s.Conn)), "")
		expect.NoError(t, s.NoteTokenUse(t.Context(), "a", 1.5))
		got, now, err := s.Token(t.Context(), "a")
		if err != nil || now == 0 || got.Text() != a.Text() || task.At(got.LastUse) != 1.5 || !got.Accepts(text, now.Std()) {
			t.Errorf("%+v at %v, %v", got, now, err)
		}
		all, err := s.Tokens(t.Context())
		if err != nil || len(all) != 2 || all[0].Name != "a" || all[1].Name != "b" || !all[1].LastUse.IsZero() || task.At(all[0].LastUse) != 1.5 {
			t.Errorf("%+v, %v", all, err)
		}
		expect.NoError(t, s.RemoveToken(t.Context(), "a"))
		expect.NoError(t, s.RemoveToken(t.Context(), "b"))
		expect.Equal(t, s.Conn.Redis.Exists(t.Context(), s.Conn.Keys.Tokens(), s.Conn.Keys.TokensUsed()).Val(), 0, "keys are left")
	})
}

func TestManyTokens(t *testing.T) {
	conntest.OnEach(t, func(t *testing.T, c *conn.Conn) {
		s := Accounts{c}
		a, _ := newToken(t, "a")
		for i := range access.MaxTokens {
			s.Conn.Redis.HSet(t.Context(), s.Conn.Keys.Tokens(), fmt.Sprint(i), a.Text())
		}
		before := conntest.Dump(t, s.Conn)
		expect.FailsWith(t, s.AddToken(t.Context(), a), access.ErrTooMany)
		expect.Equal(t, cmp.Diff(before, conntest.Dump(t, s.Conn)), "")
		expect.NoError(t, s.RemoveToken(t.Context(), "7"))
		expect.NoError(t, s.AddToken(t.Context(), a))
	})
}

// A text that TDF has not written gives nobody access, and hides no other token.
func TestInvalidTokenInRedis(t *testing.T) {
	s := Accounts{conntest.New(t)}
	good, _ := newToken(t, "good")
	expect.NoError(t, s.AddToken(t.Context(), good))
	for i, text := range []string{"", "x", `{"role":"operator"}`, `{"role":"root","sha256":"AAAA"}`} {
		name := fmt.Sprint("bad", i)
		s.Conn.Redis.HSet(t.Context(), s.Conn.Keys.Tokens(), name, text)
		if got, _, err := s.Token(t.Context(), name); !errors.Is(err, access.ErrNoToken) || got.Role != "" {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	expect.Len(t, expect.Result(s.Tokens(t.Context())).Value(t), 1)
	expect.NoError(t, s.RemoveToken(t.Context(), "bad0"))
}

func TestTokensOfAnotherType(t *testing.T) {
	conntest.OnEach(t, func(t *testing.T, c *conn.Conn) {
		s := Accounts{c}
		a, _ := newToken(t, "a")
		for _, key := range []string{s.Conn.Keys.Tokens(), s.Conn.Keys.TokensUsed()} {
			s.Conn.Redis.Set(t.Context(), key, "text", 0)
			before := conntest.Dump(t, s.Conn)
			expect.Fails(t, s.AddToken(t.Context(), a), "", key, "no error")
			expect.Fails(t, s.RemoveToken(t.Context(), "a"), "", key, "no error")
			if _, _, err := s.Token(t.Context(), "a"); err == nil {
				t.Errorf("%s: read a token", key)
			}
			expect.Equal(t, cmp.Diff(before, conntest.Dump(t, s.Conn)), "")
			s.Conn.Redis.Del(t.Context(), key)
		}
	})
}

// If the reply of a call is lost, the repeated call gets the first answer.
func TestRepeatedTokenCalls(t *testing.T) {
	t.Parallel()
	proxy := redistest.NewProxy(t, redistest.Shared(t))
	s := Accounts{conntest.Connect(t, proxy.Addr)}
	a, _ := newToken(t, "a")
	proxy.DropReplies(2, redistest.Scripts)
	expect.NoError(t, s.AddToken(t.Context(), a))
	proxy.DropReplies(2, redistest.Scripts)
	expect.NoError(t, s.RemoveToken(t.Context(), "a"))
	expect.Equal(t, proxy.Dropped(), 4, "replies were dropped")
}
