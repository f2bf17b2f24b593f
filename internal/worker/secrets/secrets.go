package secrets

import (
	"cmp"
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
	env     []string
	sources []string
	hidden  []string // the longest first
}

func newSecrets(env, sources []string) *Secrets {
	s := &Secrets{env: env, sources: sources}
	for _, setting := range env {
		_, value, _ := strings.Cut(setting, "=")
		for _, text := range append(lines(value), value) {
			if len(text) >= Shortest {
				s.hidden = append(s.hidden, text)
			}
		}
	}
	slices.SortFunc(s.hidden, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b))
	})
	s.hidden = slices.Compact(s.hidden)
	return s
}

// lines returns the lines of a value that has several, as a key has. Each line is hidden on its own.
func lines(value string) []string {
	return strings.Split(strings.NewReplacer(`\r`, "\n", `\n`, "\n", "\r", "\n").Replace(value), "\n")
}

// Env returns the variables as NAME=value, in the order of the file.
func (s *Secrets) Env() []string {
	if s == nil {
		return nil
	}
	return slices.Clone(s.env)
}

// Sources returns the sources in the file. If there are any, the secrets are for no other programs.
func (s *Secrets) Sources() []string { return s.sources }

// Mask replaces every value of at least [Shortest] bytes by ***, which is shorter. It finds values that stand in the
// text as they are in the file.
func (s *Secrets) Mask(text string) string {
	if s == nil {
		return text
	}
	for _, hidden := range s.hidden {
		text = strings.ReplaceAll(text, hidden, mask)
	}
	return text
}

// Format keeps the values out of formatted output.
func (s *Secrets) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, mask) }

// MarshalJSON keeps the values out of structured logs.
func (s *Secrets) MarshalJSON() ([]byte, error) { return []byte(`"` + mask + `"`), nil }
