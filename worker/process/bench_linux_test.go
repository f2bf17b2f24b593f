package process

import (
	"fmt"
	"os/exec"
	"testing"
)

// BenchmarkTrue compares what it costs to run an empty program with this package and with os/exec.
func BenchmarkTrue(b *testing.B) {
	b.Run("os/exec", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if err := exec.Command("/bin/true").Run(); err != nil {
					b.Error(err)
				}
			}
		})
	})
	for _, cgroups := range []bool{true, false} {
		for name, l := range map[string]Limits{"": {}, ", limits": {OpenFiles: 1000}} {
			b.Run(fmt.Sprintf("cgroups %t%s", cgroups, name), func(b *testing.B) {
				h, err := newHost(Config{Sole: true, Limits: l}, cgroups)
				if err != nil {
					b.Fatal(err)
				}
				defer h.Close()
				b.SetParallelism(4)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						p, err := h.Start(Command{Path: "/bin/true"})
						if err != nil {
							b.Error(err)
							return
						}
						<-p.Done()
					}
				})
			})
		}
	}
}
