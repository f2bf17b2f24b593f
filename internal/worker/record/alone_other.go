//go:build !linux

package record

// isOnlyOpenHere returns false, because this system cannot tell who has a file open.
func isOnlyOpenHere(int) bool { return false }
