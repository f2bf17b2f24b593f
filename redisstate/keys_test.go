package redisstate

import (
	"strings"
	"testing"

	"github.com/tdf-framework/tdf"
)

// The last part of some keys is a name that the user has chosen. So two namespaces could have a key in common. A
// namespace is refused if one of its keys could also be a key of another namespace.
func TestNoNamespaceHasTheKeysOfAnother(t *testing.T) {
	k := Keys{ns: "P"}
	for _, key := range []string{
		k.Task(1), k.Group("g"), k.updatesPrefix() + "1", k.followPrefix() + "1", k.calls("b"), k.worker("w"),
		k.workerNumber("w"), k.wakeOpen(), k.wakeServer(), k.wakeManager("b"), k.program("s"),
		k.passedPrefix() + "x", k.successes("p"),
		k.limited("x"), k.starts("x"), k.returnedPrefix() + "x",
	} {
		namespace := key[:strings.LastIndex(key, ":")]
		if tdf.CollidesWithKeys(namespace) == "" {
			t.Errorf("a namespace %s would have the key %s of namespace P", namespace, key)
		}
	}
}
