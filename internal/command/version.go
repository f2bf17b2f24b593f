package command

import (
	"runtime/debug"
	"strings"

	"github.com/tdf-framework/tdf"
)

const module = "github.com/tdf-framework/tdf"

// Version returns the version of this program: the number of the release, and the commit if the program was built in
// a clone, such as "0.1.0+1a2b3c4d5e6f". If the clone had changes, ".dirty" follows.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Path != module {
		return tdf.Version()
	}
	return versionOf(tdf.Version(), info)
}

// versionOf returns the version of a program of this module. If go install built the program at another commit than the
// release's, the version of the module contains this commit.
func versionOf(release string, info *debug.BuildInfo) string {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	if commit := settings["vcs.revision"]; commit != "" {
		dirty := ""
		if settings["vcs.modified"] == "true" {
			dirty = ".dirty"
		}
		return release + "+" + commit[:min(len(commit), commitLength)] + dirty
	}
	number, found := strings.CutPrefix(info.Main.Version, "v")
	if !found { // "(devel)", as in tests
		return release
	}
	return number
}

// commitLength is the number of digits of a commit in a version, as in the versions of modules.
const commitLength = 12
