package config

import (
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// Each of several namespaces has slots and resources of its own. What cannot be divided is refused.
func TestPartsOfNamespaces(t *testing.T) {
	const several = minimal + "namespaces=N a:b\n[worker]\n"
	for file, want := range map[string]string{
		several: "", several + "concurrency=3": "", several + "resources=N:none a:b:cpus=1": "",
		minimal + "[worker]\nconcurrency=N:3\nresources=N:auto": "",
		several + "concurrency=N:3":                             "[worker] concurrency: names other namespaces than [tdf]; expected a part for each of N, a:b",
		minimal + "[worker]\nresources=N:cpus=1 M:cpus=1":       "[worker] resources: names other namespaces than [tdf]; expected a part for each of N",
		several + "concurrency=auto":                            "[worker] concurrency: auto would give each core to all of 2 namespaces",
		several + "concurrency=N:1,a:b:auto":                    "[worker] concurrency: auto would give each core to all of 2 namespaces",
		several + "resources=cpus=4":                            "[worker] resources: each namespace would offer the same cores and memory",
		several + "resources=N:cpus=1 a:b:auto":                 "[worker] resources: each namespace would offer the same cores and memory",
		several + "task_error_filename=/e/$taskId":              "[worker] task_error_filename: several namespaces have tasks with the same ids",
	} {
		s := expect.Result(load(source, []byte(file), nil)).Value(t)
		_, err := s.forWorker()
		if want == "" {
			expect.NoError(t, err, file)
			continue
		}
		expect.Fails(t, err, want)
	}
	for _, value := range []string{"3 N:1", "N:1,N:2", ":1", "N:", "N:1 2"} {
		_, err := load(source, []byte(several+"concurrency="+value), nil)
		expect.Fails(t, err, "a number for each namespace, such as a:4,b:4", value)
	}

	tool := expect.Result(LoadTool(toolFile(t, several+"concurrency=N:4,a:b:2"), nil, Override{Section: "tdf", Name: "namespaces"})).Value(t)
	expect.Equal(t, tool.Worker.Concurrency, 4, "of one of the namespaces")

	s := expect.Result(load(source, []byte(several+"concurrency=N:4,a:b:2\nresources=N:cpus=4,memory=8G a:b:cpus=2 licence=1"), nil)).Value(t)
	w := expect.Result(s.forWorker()).Value(t)
	each := w.Each()
	expect.MustLen(t, each, 2)
	for i, want := range []Worker{{Namespace: "N", Concurrency: 4}, {Namespace: "a:b", Concurrency: 2}} {
		expect.Equal(t, each[i].Namespace, want.Namespace)
		expect.Equal(t, each[i].Concurrency, want.Concurrency)
		expect.Equal(t, each[i].Resources.Amounts.String(), []string{"cpus=4 memory=8G", "cpus=2 licence=1"}[i])
		expect.Len(t, each[i].Each(), 1)
	}
}
