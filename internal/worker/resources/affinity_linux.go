package resources

import (
	"os"

	"golang.org/x/sys/unix"
)

// affinity returns the numbers of the cores on which this process may run.
func affinity() (cores []int) {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil { // the kernel has more cores than the set
		return list(read(os.DirFS("/"), "sys/devices/system/cpu/online"))
	}
	for n := range 64 * len(set) {
		if set.IsSet(n) {
			cores = append(cores, n)
		}
	}
	return cores
}
