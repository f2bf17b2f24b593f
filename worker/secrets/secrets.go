package secrets

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Shortest is the length from which on a value is masked, in bytes. What is shorter stands in
// many a text by chance.
const Shortest = 4

const mask = "***"

// Secrets are variables whose values must not be shown. All methods are fit for nil, which has
// none, and for several goroutines.
type Secrets struct {
	env     []string
	first   [256]bool // with what a hidden text begins
	hidden  map[[Shortest]byte][]string
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

// forms returns the ways in which a value may be printed: as it is; within JSON; and where it
// stands for several lines, as a key does, each of these.
func forms(value string) []string {
	texts := []string{value, inJSON(value)}
	lines := strings.NewReplacer(`\r`, "\n", `\n`, "\n", "\r", "\n").Replace(value)
	return append(texts, strings.Split(lines, "\n")...)
}

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
	if !slices.Contains(s.hidden[key], text) {
		s.hidden[key] = append(s.hidden[key], text)
		s.first[text[0]] = true
		s.longest = max(s.longest, len(text))
	}
}

// Env returns the variables as NAME=value, in the file's order.
func (s *Secrets) Env() []string {
	if s == nil {
		return nil
	}
	return slices.Clone(s.env)
}

// Longest returns how long the longest text is that Mask replaces, in bytes; 0: there is none.
// Whoever cuts a text must know one byte less than that of what lies beyond the cut.
func (s *Secrets) Longest() int {
	if s == nil {
		return 0
	}
	return s.longest
}

// Mask replaces every value of at least [Shortest] bytes by ***.
func (s *Secrets) Mask(text string) string {
	if s.Longest() == 0 {
		return text
	}
	return string(s.MaskPart([]byte(text), 0, len(text)))
}

// MaskPart masks b, in place, and returns what then stands for b[from:to]: never more bytes than
// these were. Of a value that lies across an end, as much is shown in asterisks as lies within.
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

// spanEnd returns the end of the value that begins at i and of those that overlap it; i if there
// is none.
func (s *Secrets) spanEnd(b []byte, i int) int {
	end := i + s.at(b[i:])
	for i++; i < end; i++ {
		end = max(end, i+s.at(b[i:]))
	}
	return end
}

// at returns the length of the longest value with which b begins.
func (s *Secrets) at(b []byte) int {
	if len(b) < Shortest || !s.first[b[0]] {
		return 0
	}
	for _, text := range s.hidden[[Shortest]byte(b)] {
		if len(text) <= len(b) && text == string(b[:len(text)]) {
			return len(text)
		}
	}
	return 0
}

// Partial returns how many bytes at the end of b may be the beginning of a value, of which the
// rest is still to come.
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
	return false
}

// Format keeps the values out of whatever is printed.
func (s *Secrets) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, mask) }

// MarshalJSON keeps the values out of a structured log.
func (s *Secrets) MarshalJSON() ([]byte, error) { return []byte(`"` + mask + `"`), nil }
