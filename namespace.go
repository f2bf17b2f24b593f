package tdf

import (
	"slices"
	"strings"
)

// namespaceParts are the parts of keys that stand between a namespace and a name that users choose (docs/redis.md). A
// namespace must not contain one of them after a colon. For example, the keys of a namespace P:group would be keys of
// groups of the namespace P.
var namespaceParts = []string{
	"calls", "follow", "group", "open", "passed", "program", "successes", "task", "updates", "wake", "worker", "worker_id",
}

// CollidesWithKeys returns the part of the namespace that makes its keys collide with the keys of another namespace.
// Such a part follows a colon. CollidesWithKeys returns "" if there is no such part.
func CollidesWithKeys(namespace string) string {
	for _, part := range strings.Split(namespace, ":")[1:] {
		if slices.Contains(namespaceParts, part) {
			return part
		}
	}
	return ""
}
