package cli

import (
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/tdf-framework/tdf/internal/config"
)

// usualFile is the configuration file that tdf uses if the user names no other file.
const usualFile = "tdf.cfg"

// ConfigFile returns the path of the configuration file, or "" if there is none.
func (a *App) ConfigFile() (string, error) {
	if a.File != "" {
		return a.Path(a.File), nil
	}
	if path := a.Getenv("TDF_CONFIG"); path != "" {
		return a.Path(path), nil
	}
	file := a.Path(usualFile)
	target, err := filepath.EvalSymlinks(file)
	if err != nil {
		return "", nil
	}
	for _, path := range []string{a.Path("."), filepath.Dir(target), target} {
		if why := mistrust(path); why != "" {
			return "", &config.Error{
				Source: usualFile,
				Problem: fmt.Sprintf("not used, because another user could have written it: %s; if you trust the "+
					"file, use --config %s", why, usualFile),
			}
		}
	}
	return file, nil
}

// mistrust returns "" if only this user and root can change a file or directory. Otherwise it says why others can. A
// configuration decides which Redis gets the programs and inputs of a user, and which programs the workers of tdf up
// run.
func mistrust(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return err.Error()
	}
	name, err := filepath.Abs(path)
	if err != nil {
		name = path
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || stat.Uid != 0 && int(stat.Uid) != os.Geteuid() {
		return name + " belongs to another user"
	}
	others := fs.FileMode(0o002)
	if !isPrivateGroup(stat.Uid, stat.Gid) {
		others = 0o022
	}
	if info.Mode().Perm()&others != 0 {
		return fmt.Sprintf("%s has the mode %v", name, info.Mode())
	}
	return ""
}

// isPrivateGroup reports whether a group is the private group of a user. Many systems create a group with the name of
// each user, and let it write to the user's new files.
func isPrivateGroup(uid, gid uint32) bool {
	u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	if err != nil || u.Gid != strconv.FormatUint(uint64(gid), 10) {
		return false
	}
	g, err := user.LookupGroupId(u.Gid)
	return err == nil && g.Name == u.Username
}
