package command

import "runtime/debug"

// stamped is set by the linker when a release is built (scripts/dist).
var stamped string

// Version returns the version of a release, or else the version of the module, with the revision of its repository. It
// returns "(devel)" if both are unknown.
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
