package process

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// NotSet is the reason for missing isolation if the configuration does not ask for it.
const NotSet = "none is set"

var known = []string{Subreaper, Cgroup, User, Memory, Processes}

// An isolation says which kinds of isolation are in force, and why the other kinds are missing.
type isolation struct {
	reached map[string]bool
	missing map[string]string
	notes   map[string]string // limitations of each kind of isolation that is in force
}

func newIsolation(cfg Config) isolation {
	l := cfg.Limits
	i := isolation{map[string]bool{}, map[string]string{}, map[string]string{}}
	for name, set := range map[string]bool{
		User: cfg.User != "", Memory: l.Memory > 0, Processes: l.Processes > 0,
	} {
		if !set {
			i.missing[name] = NotSet
		}
	}
	return i
}

func (i isolation) set(name string, err error) {
	if err != nil {
		i.missing[name] = err.Error()
		delete(i.reached, name)
		return
	}
	i.reached[name] = true
	delete(i.missing, name)
}

// require returns an error if one of the named kinds of isolation is missing. The error contains the reasons.
func (i isolation) require(names []string) error {
	var lacking []string
	for _, name := range names {
		switch {
		case !slices.Contains(known, name):
			return fmt.Errorf("required isolation: unknown kind %q; want one of %s", name, strings.Join(known, ", "))
		case !i.reached[name]:
			lacking = append(lacking, fmt.Sprintf("%s (%s)", name, i.missing[name]))
		}
	}
	if len(lacking) > 0 {
		return fmt.Errorf("required isolation is unavailable: %s", strings.Join(lacking, "; "))
	}
	return nil
}

// Isolation returns the kinds of isolation that are in force, in the order of the constants. If a kind has a
// limitation, the limitation follows in parentheses.
func (h *Host) Isolation() []string {
	var reached []string
	for _, name := range known {
		if !h.isolation.reached[name] {
			continue
		}
		if note := h.isolation.notes[name]; note != "" {
			name += " (" + note + ")"
		}
		reached = append(reached, name)
	}
	return reached
}

// Missing returns the missing kinds of isolation, each with the reason. The reason is [NotSet] if the configuration
// does not set a user or limit for that kind.
func (h *Host) Missing() map[string]string { return maps.Clone(h.isolation.missing) }
