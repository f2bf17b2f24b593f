package access

import (
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
)

var now = time.Unix(1_800_000_000, 0)

func token(t testing.TB) (Token, string) {
	t.Helper()
	made, text, err := New(Token{Name: "lab_1.x-y", Role: Worker, Queues: []string{"gpu", "crawl"}, Created: now, Expires: now.Add(time.Hour)})
	expect.NoError(t, err)
	return made, text
}

func TestToken(t *testing.T) {
	made, text := token(t)
	read := expect.Result(Parse(made.Name, made.Text())).Value(t)
	expect.MustEqual(t, NameIn(text), made.Name)
	expect.MustEqual(t, read.Text(), made.Text())
	expect.MustEqual(t, strings.Join(read.Queues, ","), "gpu,crawl")
	expect.True(t, !strings.Contains(made.Text(), text[len(text)-26:]), "the stored text contains the secret")
	another, otherText := token(t)
	for name, c := range map[string]struct {
		token Token
		text  string
		at    time.Time
		want  bool
	}{
		"right":            {read, text, now, true},
		"just before":      {read, text, now.Add(time.Hour - 1), true},
		"expired":          {read, text, now.Add(time.Hour), false},
		"another token":    {another, text, now, false},
		"another text":     {read, otherText, now, false},
		"lower case":       {read, strings.ToLower(text), now, false},
		"a byte less":      {read, text[:len(text)-1], now, false},
		"a byte more":      {read, text + "A", now, false},
		"no text":          {read, "", now, false},
		"no token":         {Token{}, text, now, false},
		"nothing of both":  {Token{}, "", now, false},
		"a zero digest":    {Token{Name: made.Name, Role: Operator}, text, now, false},
		"the stored value": {read, made.Text(), now, false},
	} {
		expect.Equal(t, c.token.Accepts(c.text, c.at), c.want, name)
	}
}

func TestTokenThatNeverExpires(t *testing.T) {
	for _, expires := range []time.Time{{}, task.Never.Std()} {
		made, text, err := New(Token{Name: "a", Role: Viewer, Created: now, Expires: expires})
		read := expect.Result(Parse("a", made.Text())).Value(t)
		expect.NoError(t, err)
		expect.True(t, read.Expires.IsZero(), expires, read, err)
		expect.True(t, read.Accepts(text, task.Never.Std()), expires, read, err)
	}
}

func TestInvalidTokens(t *testing.T) {
	long := strings.Repeat("x", 65)
	for _, c := range []Token{
		{},
		{Role: Viewer},
		{Name: "a"},
		{Name: "a", Role: "root"},
		{Name: "a", Role: "Viewer"},
		{Name: long, Role: Viewer},
		{Name: "-a", Role: Viewer},
		{Name: ".", Role: Viewer},
		{Name: "a b", Role: Viewer},
		{Name: "a\n", Role: Viewer},
		{Name: "ä", Role: Viewer},
		{Name: "taskmaster", Role: Submitter},
		{Name: "skuld", Role: Submitter},
		{Name: "a", Role: Viewer, Queues: []string{"q"}},
		{Name: "a", Role: Operator, Queues: []string{"q"}},
		{Name: "a", Role: Worker, Queues: []string{""}},
		{Name: "a", Role: Worker, Queues: []string{"q q"}},
		{Name: "a", Role: Worker, Queues: make([]string, MaxQueues+1)},
		{Name: "a", Role: Viewer, Created: now, Expires: now},
		{Name: "a", Role: Viewer, Created: now, Expires: now.Add(-time.Hour)},
	} {
		if _, text, err := New(c); task.CodeOf(err) != task.CodeInvalid || text != "" {
			t.Errorf("%+v: %q, %v", c, text, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	made, _ := token(t)
	good := made.Text()
	for _, text := range []string{
		"", "null", "{}", "[]", "1", `"a"`, good[:len(good)-1], strings.Replace(good, "worker", "root", 1), strings.Replace(good, `"gpu"`, `""`, 1),
		strings.Replace(good, `"sha256":"`, `"sha256":"AA`, 1), `{"role":"operator"}`, `{"role":"operator","sha256":""}`, `{"role":"operator","sha256":null}`,
	} {
		expect.Result(Parse("a", text)).Fails(t, "")
	}
	expect.Result(Parse("a b", good)).Fails(t, "", "an invalid name was read")
}

func FuzzNameIn(f *testing.F) {
	_, text := token(f)
	for _, seed := range []string{text, "", "tdf_", "tdf__", "tdf_a_", "tdf_a", "x" + text, text + text, "tdf_\x00_A", "tdf_" + strings.Repeat("a", 100) + "_A"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		name := NameIn(text)
		valid := validName().MatchString(name) && strings.HasPrefix(text, prefix+name+"_") && len(text) <= longestText
		if name != "" {
			expect.True(t, valid, text, name)
		}
	})
}

// A role has only the rights of its row. The rights of the roles are written twice, so that nobody gives a right by mistake.
func TestRoles(t *testing.T) {
	rights := map[Role]Rights{
		Viewer:    {See: All, Inspect: true},
		Submitter: {See: Own, Change: Own, Open: true, Queues: true},
		Worker:    {Work: true, Queues: true},
		Operator:  {See: All, Change: All, Open: true, Work: true, Inspect: true, Operate: true},
		"":        {},
		"root":    {},
	}
	for role, want := range rights {
		got := role.Rights()
		if got.Text = ""; got != want {
			t.Errorf("%s: %+v, want %+v", role, got, want)
		}
	}
	expect.True(t, len(Roles()) == len(rights)-2, "roles", Roles())
}
