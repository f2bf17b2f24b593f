package resources

import "os"

// Here returns the machine of this process.
func Here() *Machine { return Detect(os.DirFS("/"), affinity(), os.LookupEnv) }

// Cores returns how many cores this process may use, at least 1: those of its CPU affinity, at most as many as the
// quotas of its cgroups allow. It is cheaper than Here.
func Cores() int {
	root := os.DirFS("/")
	return max(1, min(len(affinity()), mostCores(root, cgroups(root))))
}
