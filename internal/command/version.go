package command

import "runtime/debug"

// Version is that of the module that the command was built from, and the revision where it was
// built from a repository; "(devel)" where neither is known.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}
