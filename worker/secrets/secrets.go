package secrets

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Shortest is the length of the shortest value that is masked, in bytes. Shorter values occur in many texts by
// chance.
const Shortest = 4

const mask = "***"

// Secrets are variables whose values must not be shown. Nil Secrets are valid and empty. Several goroutines may call
// the methods.
type Secrets struct {
	env []string
	// first[c] says whether a hidden text, or an escape of its first character, begins with the byte c
	first   [256]bool
	hidden  map[[Shortest]byte][]string
	escaped []string // those hidden texts that usual encoders of JSON write with escapes
	longest int
}

func newSecrets(env []string) *Secrets {
	s := &Secrets{env: env, hidden: map[[Shortest]byte][]string{}}
	for _, setting := range env {
		_, value, _ := strings.Cut(setting, "=")
		for _, text := range forms(value) {
			s.hide(text)
		}
	}
	for _, texts := range s.hidden {
		slices.SortFunc(texts, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	}
	return s
}

// forms returns the texts that hide a value. If a value has several lines, as a key has, each line is a text of its
// own.
func forms(value string) []string {
	lines := strings.NewReplacer(`\r`, "\n", `\n`, "\n", "\r", "\n").Replace(value)
	return append([]string{value, inJSON(value)}, strings.Split(lines, "\n")...)
}

// inJSON returns the form of a value in a JSON string that needs the fewest escapes.
func inJSON(value string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(value) != nil {
		return ""
	}
	return strings.TrimSuffix(b.String()[1:], "\"\n")
}

func (s *Secrets) hide(text string) {
	if len(text) < Shortest {
		return
	}
	key := [Shortest]byte([]byte(text))
	if slices.Contains(s.hidden[key], text) {
		return
	}
	s.hidden[key] = append(s.hidden[key], text)
	s.first[text[0]] = true
	s.longest = max(s.longest, len(text))
	if len(text) <= mostEscaped && strings.ContainsFunc(text, isEscaped) {
		s.escaped = append(s.escaped, text)
		s.first['\\'] = true
		s.longest = max(s.longest, escapeBytes*len(text))
	}
}

// Env returns the variables as NAME=value, in the order of the file.
func (s *Secrets) Env() []string {
	if s == nil {
		return nil
	}
	return slices.Clone(s.env)
}

// Longest returns the length of the longest text that Mask replaces, in bytes, or 0 if Mask replaces nothing. A caller
// of MaskPart that cuts a text must also pass the bytes that follow the cut: one byte less than Longest returns.
func (s *Secrets) Longest() int {
	if s == nil {
		return 0
	}
	return s.longest
}

// Mask replaces every value of at least [Shortest] bytes by ***, also if the value is part of a JSON text.
func (s *Secrets) Mask(text string) string {
	if s.Longest() == 0 {
		return text
	}
	return string(s.MaskPart([]byte(text), 0, len(text)))
}

// MaskPart masks the values in b[from:to] in place. It returns the result, which is never longer than b[from:to]. If
// only a part of a value is between from and to, MaskPart masks that part.
func (s *Secrets) MaskPart(b []byte, from, to int) []byte {
	if s.Longest() == 0 {
		return b[from:to]
	}
	out := b[:0]
	for i := 0; i < to; {
		end := s.spanEnd(b, i)
		if end == i {
			if i >= from {
				out = append(out, b[i])
			}
			i++
			continue
		}
		within := min(end, to) - max(i, from)
		out = append(out, mask[:max(0, min(within, len(mask)))]...)
		i = end
	}
	return out
}

// spanEnd returns the end of the value that begins at i. If other values overlap that value, spanEnd returns the end
// of the last one. It returns i if no value begins at i.
func (s *Secrets) spanEnd(b []byte, i int) int {
	end := i + s.lengthAt(b[i:])
	for i++; i < end; i++ {
		end = max(end, i+s.lengthAt(b[i:]))
	}
	return end
}

// lengthAt returns the length of the longest value at the beginning of b.
func (s *Secrets) lengthAt(b []byte) int {
	if len(b) < Shortest || !s.first[b[0]] {
		return 0
	}
	longest := 0
	for _, text := range s.hidden[[Shortest]byte(b)] {
		if len(text) <= len(b) && text == string(b[:len(text)]) {
			longest = len(text)
			break
		}
	}
	for _, text := range s.escaped {
		n, _ := matchEscaped(b, text)
		longest = max(longest, n)
	}
	return longest
}

// Partial returns how many bytes at the end of b may be the beginning of a value that continues after b.
func (s *Secrets) Partial(b []byte) int {
	if s == nil {
		return 0
	}
	for i := max(0, len(b)-s.longest+1); i < len(b); i++ {
		if s.first[b[i]] && s.begins(b[i:]) {
			return len(b) - i
		}
	}
	return 0
}

func (s *Secrets) begins(part []byte) bool {
	for _, texts := range s.hidden {
		for _, text := range texts {
			if len(text) > len(part) && text[:len(part)] == string(part) {
				return true
			}
		}
	}
	return slices.ContainsFunc(s.escaped, func(text string) bool {
		_, more := matchEscaped(part, text)
		return more
	})
}

// Format keeps the values out of formatted output.
func (s *Secrets) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, mask) }

// MarshalJSON keeps the values out of structured logs.
func (s *Secrets) MarshalJSON() ([]byte, error) { return []byte(`"` + mask + `"`), nil }
