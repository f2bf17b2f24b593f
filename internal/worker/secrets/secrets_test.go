package secrets

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

func of(values ...string) *Secrets {
	var env []string
	for i, value := range values {
		env = append(env, fmt.Sprintf("S%d=%s", i, value))
	}
	return newSecrets(env, nil)
}

func TestMask(t *testing.T) {
	for name, c := range map[string]struct {
		secrets    *Secrets
		text, want string
	}{
		"none":            {nil, "hunter22", "hunter22"},
		"empty file":      {of(), "hunter22", "hunter22"},
		"all of it":       {of("hunter22"), "hunter22", "***"},
		"within":          {of("hunter22"), "a hunter22, hunter22\n", "a ***, ***\n"},
		"side by side":    {of("hunter22"), "hunter22hunter22", "******"},
		"nearly":          {of("hunter22"), "hunter2 Hunter22", "hunter2 Hunter22"},
		"too short":       {of("abc"), "abc", "abc"},
		"of four bytes":   {of("abcd"), "abc abcd", "abc ***"},
		"longest first":   {of("pass", "password"), "password pass", "*** ***"},
		"one in another":  {of("abcdefgh", "cdef"), "abcdefgh cdef", "*** ***"},
		"bytes":           {of("\xff\xfe\xfd\xfc"), "\x00\xff\xfe\xfd\xfc\n", "\x00***\n"},
		"lines of a key":  {of(`-----BEGIN\nabcdef\nxy\n`), "-----BEGIN\nabcdef\nxy\n", "***\n***\nxy\n"},
		"no encoding":     {of(`a"b\c`), `a"b\c {"x":"a\"b\\c"}`, `*** {"x":"a\"b\\c"}`},
		"a value with CR": {of("abcd\refgh"), "efgh", "***"},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, c.secrets.Mask(c.text), c.want)
		})
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	s := of("hunter22")
	data := expect.Result(json.Marshal(map[string]any{"s": s})).Value(t)
	var b bytes.Buffer
	fmt.Fprintf(&b, "%v %+v %#v %s %q %d %v %s", s, s, s, s, s, s, struct{ S *Secrets }{s}, data)
	expect.True(t, !strings.Contains(b.String(), "hunter22"), b.String())
}

func TestNoSecrets(t *testing.T) {
	var s *Secrets
	expect.Equal(t, s.Env(), nil)
	expect.Equal(t, testing.AllocsPerRun(10, func() { s.Mask("a text") }), 0, "allocations")
}
