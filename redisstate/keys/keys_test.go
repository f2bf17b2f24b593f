package keys

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/tdf-framework/tdf"
)

// keyWord finds the first word of each key that ends with a name or a number, in the code that builds the key.
var keyWord = regexp.MustCompile(`(?:\.Key\(|prefix \.\. )["']([a-z_]+):`)

// The last part of some keys is a name that the user has chosen. So two namespaces could have a key in common. A
// namespace is refused if one of its keys could also be a key of another namespace.
func TestNoNamespaceHasTheKeysOfAnother(t *testing.T) {
	t.Parallel()
	found := 0
	for _, pattern := range []string{"*.go", "../lua/*.lua"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, word := range keyWord.FindAllStringSubmatch(string(source), -1) {
				found++
				if tdf.CollidesWithKeys("P:"+word[1]) == "" {
					t.Errorf("%s: a namespace P:%s would have keys of namespace P", file, word[1])
				}
			}
		}
	}
	if found < 25 {
		t.Errorf("only %d keys were found", found)
	}
}
