package command

import "runtime/debug"

// stamped is the version of the release. scripts/build sets it to TDF_VERSION.
var stamped string

// Version returns the version of the release. If this program is not from a release, Version returns the version of the
// module, which contains the revision of the repository. If the version of the module is unknown, too, Version returns
// "(devel)".
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
