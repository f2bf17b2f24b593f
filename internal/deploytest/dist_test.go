package deploytest

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// TestMain clears git's environment variables, so that git behaves in the same way for every user. If a git hook runs the tests,
// these variables would otherwise point to this repository.
func TestMain(m *testing.M) {
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "GIT_") {
			os.Unsetenv(name)
		}
	}
	os.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	os.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	os.Exit(m.Run())
}

// copied are the files of this repository that the scripts of a release need.
var copied = []string{
	"scripts/build", "scripts/dist", "scripts/sbom", "scripts/wheel", "internal/command/version.go", "version.go", ".gitignore", "LICENSE",
	"deploy/package/nfpm.yaml", "deploy/package/postinstall", "deploy/package/preremove", "deploy/package/postremove",
	"deploy/tdf-server.service", "deploy/tdf-worker@.service", "configs/server.cfg", "configs/worker.cfg",
}

// project makes a repository of release 0.7.1 with this project's scripts, and with commands that print their version.
func project(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "project")
	for _, name := range copied {
		info := expect.Result(os.Stat(filepath.Join(root, name))).Value(t)
		write(t, filepath.Join(dir, name), info.Mode(), read(t, filepath.Join(root, name)))
	}
	mod := strings.Split(read(t, filepath.Join(root, "go.mod")), "\nrequire")[0]
	write(t, filepath.Join(dir, "go.mod"), 0o644, mod+"\n")
	write(t, filepath.Join(dir, "VERSION"), 0o644, "0.7.1\n")
	for _, name := range []string{"tdf", "tdf-server", "tdf-worker"} {
		write(t, filepath.Join(dir, "cmd", name, "main.go"), 0o644,
			"package main\n\nimport \"github.com/tdf-framework/tdf/internal/command\"\n\nfunc main() { println(command.Version()) }\n")
	}
	for _, name := range []string{"README.md", "CHANGELOG.md", "docs/page.txt", "scripts/other", "python/other.py"} {
		write(t, filepath.Join(dir, name), 0o644, name)
	}
	write(t, filepath.Join(dir, "python/tdf/__init__.py"), 0o644, "answer = 42\n")
	write(t, filepath.Join(dir, "deploy/tool"), 0o755, "#!/bin/sh\n")
	git(t, dir, "init", "--quiet")
	git(t, dir, "add", ".")
	git(t, dir, "commit", "--quiet", "--message=x")
	git(t, dir, "tag", "v0.7.1")
	write(t, filepath.Join(dir, "configs/mine.cfg"), 0o644, "password=hush")
	return dir
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	command(t, dir, "git", append([]string{"-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "init.defaultBranch=main"}, args...)...)
}

// released are the files of a release.
var released = strings.Fields(`tdf-0.7.1-1.aarch64.rpm tdf-0.7.1-1.x86_64.rpm tdf-0.7.1-py3-none-any.whl
	tdf_0.7.1_amd64.deb tdf_0.7.1_arm64.deb tdf_0.7.1_darwin_amd64.tar.gz tdf_0.7.1_darwin_arm64.tar.gz
	tdf_0.7.1_linux_amd64.tar.gz tdf_0.7.1_linux_arm64.tar.gz tdf_0.7.1_sbom.json`)

// quickGo is a go that builds every command for this machine, and no packages.
const quickGo = "#!/bin/sh\ncase $1 in build) unset GOOS GOARCH ;; run) exit ;; esac\nexec \"$REAL_GO\" \"$@\"\n"

// Compilers for other platforms and nfpm need two minutes of CPU time. make dist, which uses their output later, sets TDF_DIST; without
// it, the test uses quickGo.
func TestDist(t *testing.T) {
	whole, want := os.Getenv("TDF_DIST") != "", released
	if !whole {
		bin := t.TempDir()
		write(t, filepath.Join(bin, "go"), 0o755, quickGo)
		t.Setenv("REAL_GO", expect.Result(exec.LookPath("go")).Value(t))
		t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
		want = slices.DeleteFunc(slices.Clone(want), regexp.MustCompile(`\.(deb|rpm)$`).MatchString)
	}
	dir := project(t)
	command(t, dir, "scripts/dist")
	dist := filepath.Join(dir, "dist")
	command(t, dist, "sha256sum", "--check", "--strict", "SHA256SUMS")
	sums := read(t, filepath.Join(dist, "SHA256SUMS"))
	var names []string
	for line := range strings.Lines(sums) {
		names = append(names, strings.Fields(line)[1])
	}
	expect.Equal(t, names, want)
	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		name := unpack(t, dist, "linux_"+arch, "tdf", "tdf-server", "tdf-worker")
		if whole || arch == runtime.GOARCH {
			checkStatic(t, filepath.Join(name, "tdf-worker"), machine)
		}
		unpack(t, dist, "darwin_"+arch, "tdf")
	}
	commit := strings.TrimSpace(command(t, dir, "git", "rev-parse", "HEAD"))
	for _, name := range []string{"tdf", "tdf-server", "tdf-worker"} {
		out := command(t, dist, filepath.Join(dist, "tdf_0.7.1_linux_"+runtime.GOARCH, name))
		expect.Equal(t, out, "0.7.1+"+commit[:12]+"\n", name)
	}
	t.Run("wheel", func(t *testing.T) { checkWheel(t, filepath.Join(dist, "tdf-0.7.1-py3-none-any.whl")) })
	t.Run("sbom", func(t *testing.T) { checkBill(t, filepath.Join(dist, "tdf_0.7.1_sbom.json")) })
	if whole {
		t.Run("deb", func(t *testing.T) { checkDeb(t, filepath.Join(dist, "tdf_0.7.1_"+runtime.GOARCH+".deb")) })
	}

	if !whole {
		return
	}
	// The same commit gives the same files, even if the directory, the umask and the times of the files differ.
	other := filepath.Join(t.TempDir(), "other", "place")
	must(t, os.MkdirAll(filepath.Dir(other), 0o755))
	command(t, filepath.Dir(other), "sh", "-c", "umask 077; git clone --quiet '"+dir+"' '"+other+"'; cd '"+other+"'; umask 002; TZ=Asia/Tokyo GOFLAGS=-race scripts/dist")
	expect.Equal(t, read(t, filepath.Join(other, "dist", "SHA256SUMS")), sums, "sums differ")
}

// unpack unpacks an archive, and returns its directory. The archive has files of the commit only, and these commands.
func unpack(t *testing.T, dist, platform string, commands ...string) string {
	t.Helper()
	name := "tdf_0.7.1_" + platform
	want := append([]string{"", "CHANGELOG.md", "LICENSE", "README.md", "configs/", "deploy/", "deploy/package/", "deploy/tool", "docs/", "docs/page.txt"}, commands...)
	for _, file := range copied {
		if strings.HasPrefix(file, "configs/") || strings.HasPrefix(file, "deploy/") {
			want = append(want, file)
		}
	}
	for i := range want {
		want[i] = name + "/" + want[i]
	}
	slices.Sort(want)
	listed := strings.Fields(command(t, dist, "tar", "-tzf", name+".tar.gz"))
	slices.Sort(listed)
	expect.Equal(t, listed, want, "packed")
	command(t, dist, "tar", "-xzf", name+".tar.gz")
	return filepath.Join(dist, name)
}

// The wheel has the package, without its tests, and the sums of its files. Python can import it.
func checkWheel(t *testing.T, wheel string) {
	files := expect.Result(zip.OpenReader(wheel)).Value(t)
	defer files.Close()
	content := map[string]string{}
	for _, f := range files.File {
		r := expect.Result(f.Open()).Value(t)
		content[f.Name] = string(expect.Result(io.ReadAll(r)).Value(t))
	}
	const info = "tdf-0.7.1.dist-info/"
	expect.Equal(t, slices.Sorted(maps.Keys(content)), []string{info + "LICENSE", info + "METADATA", info + "RECORD", info + "WHEEL", "tdf/__init__.py"})
	expect.Contains(t, content[info+"METADATA"], "\nVersion: 0.7.1\n")
	for line := range strings.Lines(content[info+"RECORD"]) {
		fields := strings.Split(strings.TrimSpace(line), ",")
		if fields[0] == info+"RECORD" {
			continue
		}
		sum := sha256.Sum256([]byte(content[fields[0]]))
		expect.Equal(t, fields[1], "sha256="+base64.RawURLEncoding.EncodeToString(sum[:]), fields[0])
	}
	cmd := exec.CommandContext(t.Context(), "python3", "-c", "import tdf; print(tdf.answer)")
	cmd.Env = append(os.Environ(), "PYTHONPATH="+wheel)
	out := expect.Result(cmd.CombinedOutput()).Value(t)
	expect.Equal(t, string(out), "42\n")
}

// The bill of materials names the release and the modules of the commands. The project's commands need the standard library only.
func checkBill(t *testing.T, name string) {
	var bill struct {
		BOMFormat string
		Metadata  struct {
			Component struct{ Name, Version string }
		}
		Components []struct{ Name, Version, PURL string }
	}
	must(t, json.Unmarshal([]byte(read(t, name)), &bill))
	expect.Equal(t, bill.BOMFormat, "CycloneDX")
	expect.Equal(t, bill.Metadata.Component.Version, "0.7.1")
	expect.MustLen(t, bill.Components, 1)
	number := strings.TrimPrefix(strings.TrimSpace(command(t, root, "go", "env", "GOVERSION")), "go")
	expect.Equal(t, bill.Components[0].PURL, "pkg:golang/std@"+number)
}

// The Python package, the changelog and the page on installing have the version of the release. The wheel asks for the Python of
// pyproject.toml. The Redis of the compose files is one with which all tests pass.
func TestVersionsAgree(t *testing.T) {
	release := strings.TrimSpace(read(t, filepath.Join(root, "VERSION")))
	project := read(t, filepath.Join(root, "python/pyproject.toml"))
	expect.Contains(t, project, "\nversion = \""+release+"\"\n")
	expect.Contains(t, read(t, filepath.Join(root, "CHANGELOG.md")), "\n## ["+release+"]\n")
	page := read(t, filepath.Join(root, "docs/install.md"))
	for _, name := range []string{"tdf_" + release + "_amd64.deb", "tdf-" + release + "-1.x86_64.rpm", "tdf-" + release + "-py3-none-any.whl", "@v" + release} {
		expect.Contains(t, page, name)
	}
	python := strings.Trim(strings.TrimPrefix(lineOf(t, project, "requires-python = "), "requires-python = "), `"`)
	expect.Contains(t, read(t, filepath.Join(root, "scripts/wheel")), "\nRequires-Python: "+python+"\n")
	for _, name := range []string{"compose.yaml", "compose.sentinel.yaml", "compose.cluster.yaml"} {
		_, rest, _ := strings.Cut(read(t, filepath.Join(root, "deploy", name)), "image: redis:")
		version, _, _ := strings.Cut(rest, "-")
		expect.Contains(t, read(t, filepath.Join(root, "docs/operations.md")), "| Redis "+version+" | all |", name)
	}
}

// A release is made from a commit, whose tag and VERSION agree.
func TestDistRefuses(t *testing.T) {
	dir := project(t)
	refuses := func(cause string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "scripts/dist"))
		cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
		out, err := cmd.CombinedOutput()
		expect.Fails(t, err, "")
		expect.Contains(t, string(out), cause)
	}
	write(t, filepath.Join(dir, "VERSION"), 0o644, "0.7.2\n")
	refuses("dist: the tree has changes; commit them")
	git(t, dir, "commit", "--quiet", "--all", "--message=x")
	git(t, dir, "tag", "v0.7.3")
	refuses("dist: the commit has the tag v0.7.3, and VERSION is 0.7.2; ")
	must(t, os.RemoveAll(filepath.Join(dir, ".git")))
	refuses("dist: not a clone")
}

func checkStatic(t *testing.T, name string, machine elf.Machine) {
	t.Helper()
	f := expect.Result(elf.Open(name)).Value(t)
	defer f.Close()
	for _, p := range f.Progs {
		expect.True(t, p.Type != elf.PT_INTERP, name, "is not static")
	}
	text := expect.Result(os.ReadFile(name)).Value(t)
	expect.Equal(t, f.Machine, machine, name)
	expect.True(t, !bytes.Contains(text, []byte(filepath.Dir(filepath.Dir(name)))), name, "is for", f.Machine, "or contains the path of its build")
}
