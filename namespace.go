package tdf

import (
	"slices"
	"strings"
)

// namespaceParts are the parts of keys that stand between a namespace and a name that users choose (docs/redis.md). A
// namespace must not contain one of them after a colon: the keys of a namespace P:group would be keys of groups of P.
var namespaceParts = []string{
	"calls", "follow", "group", "open", "passed", "program", "successes", "task", "updates", "wake", "worker", "worker_id",
}

// CollidesWithKeys returns the part of a namespace after a colon that makes its keys collide with the keys of another
// namespace. It returns "" if there is no such part.
func CollidesWithKeys(namespace string) string {
	for _, part := range strings.Split(namespace, ":")[1:] {
		if slices.Contains(namespaceParts, part) {
			return part
		}
	}
	return ""
}
