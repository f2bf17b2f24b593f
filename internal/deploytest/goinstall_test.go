package deploytest

import (
	"archive/zip"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

const module = "github.com/tdf-framework/tdf"

// proxy makes a module proxy below a directory that serves the tracked files of this tree as one version of the module.
func proxy(t *testing.T, version string) string {
	t.Helper()
	dir := t.TempDir()
	at := filepath.Join(dir, filepath.FromSlash(module), "@v", version)
	write(t, filepath.Join(filepath.Dir(at), "list"), 0o644, version+"\n")
	write(t, at+".info", 0o644, fmt.Sprintf(`{"Version":%q}`, version))
	write(t, at+".mod", 0o644, read(t, filepath.Join(root, "go.mod")))
	f := expect.Result(os.Create(at + ".zip")).Value(t)
	defer f.Close()
	archive := zip.NewWriter(f)
	for _, name := range moduleFiles(t) {
		w := expect.Result(archive.Create(module + "@" + version + "/" + name)).Value(t)
		_, err := w.Write([]byte(read(t, filepath.Join(root, name))))
		must(t, err)
	}
	must(t, archive.Close())
	return dir
}

// moduleFiles returns the tracked files of the module, without those of the modules in it.
func moduleFiles(t *testing.T) (files []string) {
	t.Helper()
	tracked := strings.Fields(command(t, root, "git", "ls-files"))
	var others []string
	for _, name := range tracked {
		if dir, found := strings.CutSuffix(name, "go.mod"); found && dir != "" {
			others = append(others, dir)
		}
	}
	for _, name := range tracked {
		if !strings.HasPrefix(name, ".") && !hasPrefix(name, others) {
			files = append(files, name)
		}
	}
	return files
}

func hasPrefix(name string, prefixes []string) bool {
	for _, prefix := range prefixes {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// go install builds tdf from a module proxy, which has no clone. tdf then shows the version of the release. Modules that tdf needs
// come from the cache on this machine, and need no network. With -trimpath, Go's build cache serves every place of the module cache.
func TestGoInstall(t *testing.T) {
	release := strings.TrimSpace(read(t, filepath.Join(root, "VERSION")))
	cache := strings.TrimSpace(command(t, root, "go", "env", "GOMODCACHE"))
	bin := t.TempDir()
	fast := "-gcflags=all=-N -l" // the compiler then needs little more than half of the time
	cmd := exec.CommandContext(t.Context(), "go", "install", "-ldflags=-w", fast, module+"/cmd/tdf@v"+release)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "GOPROXY=file://"+proxy(t, "v"+release)+",file://"+cache+"/cache/download", "GOSUMDB=off",
		"GOMODCACHE="+t.TempDir(), "GOFLAGS=-modcacherw -trimpath", "CGO_ENABLED=0", "GOBIN="+bin, "GOGC=400")
	out, err := cmd.CombinedOutput()
	expect.MustTrue(t, err == nil, err, string(out))
	expect.Equal(t, command(t, bin, filepath.Join(bin, "tdf"), "version"), "tdf "+release+"\n")
}
