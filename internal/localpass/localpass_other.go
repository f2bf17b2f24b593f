//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package localpass

// Find returns "", because tdf up does not run on this system.
func Find(string, int) string { return "" }

// Running returns nil, for the same reason.
func Running() []string { return nil }
