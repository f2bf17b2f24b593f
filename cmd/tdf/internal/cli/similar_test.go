package cli

import (
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

func TestDidYouMean(t *testing.T) {
	names := []string{"grid", "grid-1", "grid-2", "grid-3", "grid-4", "night/1", "Ä\x1b", "ab", "", strings.Repeat("x", 2000)}
	for typed, want := range map[string]string{
		"gird":                    "; did you mean grid?",
		"gri":                     "; did you mean grid or grid-1 or grid-2?", // one prefix, one distance
		"grid-":                   "; did you mean grid or grid-1 or grid-2?",
		"GRID-4":                  "; did you mean grid-4?",
		"nigth/1":                 "; did you mean night/1?",
		"night":                   "; did you mean night/1?",
		"ä":                       ";",
		"ac":                      "; did you mean ab?",
		"a":                       ";",
		"xyz":                     ";",
		"":                        ";",
		strings.Repeat("x", 1999): ";",
	} {
		expect.Equal(t, didYouMean(typed, names, ShellWord), want, typed)
	}
	expect.Equal(t, didYouMean("evi\x1b x", []string{"evil\x1b x"}, ShellWord), `; did you mean 'evil\x1b x'?`)
}
