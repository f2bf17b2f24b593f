package tdf

import (
	"slices"
	"strings"
)

// namespaceParts are the words that can follow a namespace and a colon in a key (docs/redis.md). A namespace must not
// contain one of these words after a colon. For example, a key of the namespace P:group could equal a key of a group in
// the namespace P.
var namespaceParts = []string{
	"calls", "coming", "definitions", "dependents", "follow", "group", "group_dependents", "heads", "later", "levels", "limited", "open", "passed", "program",
	"returned", "starts", "successes", "task", "updates", "wake", "worker", "worker_id",
}

// CollidesWithKeys returns the word in the namespace that makes its keys collide with the keys of another namespace. It
// returns "" if no keys collide.
func CollidesWithKeys(namespace string) string {
	for _, part := range strings.Split(namespace, ":")[1:] {
		if slices.Contains(namespaceParts, part) {
			return part
		}
	}
	return ""
}
