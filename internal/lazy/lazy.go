// Package lazy makes values when they are first used instead of at the start of the process, because shells and scripts
// start tdf often. TestStart of package cmd bounds what a package may do at the start.
package lazy

import (
	"regexp"
	"sync"
)

// Regexp returns a function that returns the compiled expression. The first call compiles it. If the expression is
// invalid, every call panics.
func Regexp(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
