package keys

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
)

// keyWord finds the first word of each key that ends with a name or a number, in the code that builds the key.
var keyWord = regexp.MustCompile(`(?:\.Key\(|prefix \.\. )["']([a-z_]+):`)

// In a cluster, the part of each key between the first braces decides about its slot. It must not be empty.
func TestKeysInAClusterHaveOneHashTag(t *testing.T) {
	t.Parallel()
	for namespace, want := range map[string]string{
		"P": "{P}:due", "{P}": "{P}:due", "a{b}c": "a{b}c:due", "a{}b": "{a{}b}:due", "a{b": "{a{b}:due", "a}b": "{a}b}:due",
	} {
		k := InCluster(namespace)
		expect.Equal(t, k.Due(), want)
		expect.Equal(t, k.Namespace(), namespace)
	}
}

// The last part of some keys is a name that the user has chosen. So two namespaces could have a key in common. A
// namespace is refused if one of its keys could also be a key of another namespace.
func TestNoNamespaceHasTheKeysOfAnother(t *testing.T) {
	t.Parallel()
	found := 0
	for _, pattern := range []string{"*.go", "../lua/*.lua"} {
		files := expect.Result(filepath.Glob(pattern)).Value(t)
		for _, file := range files {
			source := expect.Result(os.ReadFile(file)).Value(t)
			for _, word := range keyWord.FindAllStringSubmatch(string(source), -1) {
				found++
				expect.True(t, task.CollidesWithKeys("P:"+word[1]) != "", file, "a namespace P", word[1], "would have keys of namespace P")
			}
		}
	}
	expect.True(t, found >= 25, "only", found, "keys were found")
}
