//go:build !linux

package resources

import "runtime"

// affinity returns the numbers of all cores.
func affinity() (cores []int) {
	for n := range runtime.NumCPU() {
		cores = append(cores, n)
	}
	return cores
}
