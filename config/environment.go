package config

import (
	"slices"
	"strings"
)

const envPrefix = "TDF_CFG_"

// setFromEnvironment sets the keys from the environment variables in environ ("NAME=value"). The variables are sorted,
// so that the same environment always causes the same error.
func (s *settings) setFromEnvironment(environ []string) error {
	for _, variable := range slices.Sorted(slices.Values(environ)) {
		name, value, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, envPrefix) {
			continue
		}
		i := slices.IndexFunc(keys, func(k key) bool { return k.env() == name })
		if i < 0 {
			return &Error{Source: name, Problem: "unknown key; expected " + envPrefix + "$SECTION_$KEY in upper case, such as " + keys[0].env()}
		}
		if err := s.set(&keys[i], name, value); err != nil {
			return err
		}
	}
	return nil
}
