package command

import "runtime/debug"

// stamped is set by the linker when a release is built (scripts/dist).
var stamped string

// Version is what a release was stamped with; else that of the module that the command was built
// from, and the revision where it was built from a repository; "(devel)" where neither is known.
func Version() string {
	if stamped != "" {
		return stamped
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}
