package task

import (
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// A worker can put a file at each path.
func TestPathsOfBlobs(t *testing.T) {
	t.Parallel()
	for paths, want := range map[string]string{
		":a :a/b":       `"a" is a file and a directory`,
		":a/b/c :d :a":  `"a" is a file and a directory`,
		":a/b :a/b":     `two files are at "a/b"`,
		":a/b :a/c :ab": "",
		"  :a":          "",
		":../a":         "has an empty element",
	} {
		var all []string
		for at := range strings.SplitSeq(paths, " ") {
			all = append(all, strings.Repeat("0", 64)+":5"+at)
		}
		err := CheckBlobs("blobs", all)
		if want == "" {
			expect.NoError(t, err, paths)
		} else {
			expect.Fails(t, err, want)
		}
	}
}
