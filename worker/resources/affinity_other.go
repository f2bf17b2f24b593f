//go:build !linux

package resources

// affinity returns no cores: workers run on Linux only.
func affinity() []int { return nil }
