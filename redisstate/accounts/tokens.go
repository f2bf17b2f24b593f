package accounts

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

// AddToken stores a token. If a token with its name exists, the error wraps [access.ErrTaken].
func (s *Accounts) AddToken(ctx context.Context, t access.Token) error {
	return s.setToken(ctx, "add token "+t.Name, t.Name, t.Text(), "")
}

// ReplaceToken replaces a token by another with its name. The old one is no longer accepted. If the token has changed
// since it was read, or was removed, the error wraps [access.ErrNoToken].
func (s *Accounts) ReplaceToken(ctx context.Context, old, t access.Token) error {
	return s.setToken(ctx, "replace token "+t.Name, t.Name, t.Text(), old.Text())
}

// RemoveToken removes a token. From then on, Token does not return it. If there is no such token, the error wraps
// [access.ErrNoToken].
func (s *Accounts) RemoveToken(ctx context.Context, name string) error {
	return s.setToken(ctx, fmt.Sprintf("remove token %.100q", name), name, "", "")
}

func (s *Accounts) setToken(ctx context.Context, doing, name, text, replaced string) error {
	keys := []string{s.Conn.Keys.Calls(s.Conn.Boot()), s.Conn.Keys.Tokens(), s.Conn.Keys.TokensUsed()}
	reply, err := s.Conn.CallOnce(ctx, lua.TokenSet, keys, true, conn.IsText, func(e *conn.Args) {
		e.Add(name, text, strconv.Itoa(access.MaxTokens), replaced)
	})
	if conn.Unanswered(err) {
		return conn.Failed(doing, err)
	}
	if refused := map[string]error{
		"=": access.ErrTaken, "-": access.ErrNoToken,
		"^": access.ErrTooMany,
	}[conn.Text(reply)]; refused != nil {
		return fmt.Errorf("%s: %w", doing, refused)
	}
	return conn.Failed(doing, err)
}

// Token returns a token, and the time of Redis's clock. It returns [access.ErrNoToken] if there is no such token, or if
// its text in Redis is invalid.
func (s *Accounts) Token(ctx context.Context, name string) (t access.Token, now task.Time, err error) {
	var text *redis.StringCmd
	var used *redis.FloatCmd
	var clock *redis.TimeCmd
	err = s.Conn.Pipeline(ctx, "read a token", func(p redis.Pipeliner) {
		k := &s.Conn.Keys
		text, used, clock = p.HGet(ctx, k.Tokens(), name), p.ZScore(ctx, k.TokensUsed(), name), p.Time(ctx)
	})
	if err != nil {
		return t, 0, err
	}
	t, err = access.Parse(name, text.Val())
	if err != nil {
		return access.Token{}, 0, access.ErrNoToken
	}
	t.LastUse = task.Time(used.Val()).Std()
	return t, task.At(clock.Val()), nil
}

// NoteTokenUse records that a token was used. It is best effort, and does nothing if the token was removed.
func (s *Accounts) NoteTokenUse(ctx context.Context, name string, now task.Time) error {
	return s.Conn.BestEffort(ctx, "record the use of a token", func(p redis.Pipeliner) {
		p.ZAddXX(ctx, s.Conn.Keys.TokensUsed(), redis.Z{Score: float64(now), Member: name})
	})
}

// Tokens returns all tokens, ordered by name. It logs and leaves out a token whose text in Redis is invalid, because
// nobody can use it.
func (s *Accounts) Tokens(ctx context.Context) ([]access.Token, error) {
	var texts *redis.MapStringStringCmd
	var used *redis.ZSliceCmd
	err := s.Conn.Pipeline(ctx, "read the tokens", func(p redis.Pipeliner) {
		texts, used = p.HGetAll(ctx, s.Conn.Keys.Tokens()), p.ZRangeWithScores(ctx, s.Conn.Keys.TokensUsed(), 0, -1)
	})
	if err != nil {
		return nil, err
	}
	lastUse := map[string]task.Time{}
	for _, z := range used.Val() {
		lastUse[fmt.Sprint(z.Member)] = task.Time(z.Score)
	}
	all := []access.Token{}
	for name, text := range texts.Val() {
		t, err := access.Parse(name, text)
		if err != nil {
			s.Conn.Log.Warn("a token is invalid; nobody can use it", "name", name)
			continue
		}
		t.LastUse = lastUse[name].Std()
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b access.Token) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}
