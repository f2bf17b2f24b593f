package tdf

import (
	"slices"
	"strings"
)

// namespaceParts are the names that TDF puts behind a namespace and before names of its users'
// (docs/redis.md). A namespace must not have one of them behind a colon: the keys of `P:group`
// would be those of groups of `P`.
var namespaceParts = []string{
	"calls", "follow", "group", "open", "passed", "program", "successes", "task", "updates", "wake", "worker", "worker_id",
}

// CollidesWithKeys returns the part of a namespace behind a colon that makes its keys those of
// another namespace; "" if there is none.
func CollidesWithKeys(namespace string) string {
	for _, part := range strings.Split(namespace, ":")[1:] {
		if slices.Contains(namespaceParts, part) {
			return part
		}
	}
	return ""
}
