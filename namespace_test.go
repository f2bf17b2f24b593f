package tdf

import "testing"

func TestNamespacesThatCollide(t *testing.T) {
	for namespace, want := range map[string]string{
		"P": "", "group": "", "a:b": "", "P:groups": "", "{P}:x": "",
		"P:group": "group", "P:x:task:y": "task", ":wake": "wake", "P:worker_id": "worker_id",
	} {
		if got := CollidesWithKeys(namespace); got != want {
			t.Errorf("%s: %q, want %q", namespace, got, want)
		}
	}
}
