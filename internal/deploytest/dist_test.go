package deploytest

import (
	"bytes"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
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

// project makes a repository with this project's scripts, and with a command that prints its version.
func project(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "project")
	for _, name := range []string{"scripts/build", "scripts/dist", "internal/command/version.go", "go.mod", ".gitignore"} {
		info := expect.Result(os.Stat(filepath.Join(root, name))).Value(t)
		write(t, filepath.Join(dir, name), info.Mode(), read(t, filepath.Join(root, name)))
	}
	mod := strings.Split(read(t, filepath.Join(root, "go.mod")), "\nrequire")[0]
	write(t, filepath.Join(dir, "go.mod"), 0o644, mod+"\n")
	write(t, filepath.Join(dir, "cmd/tdf-x/main.go"), 0o644,
		"package main\n\nimport \"github.com/tdf-framework/tdf/internal/command\"\n\nfunc main() { println(command.Version()) }\n")
	for _, name := range []string{"README.md", "LICENSE", "configs/x.cfg", "docs/page.txt", "scripts/other"} {
		write(t, filepath.Join(dir, name), 0o644, name)
	}
	write(t, filepath.Join(dir, "deploy/tool"), 0o755, "#!/bin/sh\n")
	git(t, dir, "init", "--quiet")
	git(t, dir, "add", ".")
	git(t, dir, "commit", "--quiet", "--message=x")
	git(t, dir, "tag", "release/v7")
	write(t, filepath.Join(dir, "configs/mine.cfg"), 0o644, "password=hush")
	return dir
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	command(t, dir, "git", append([]string{"-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "init.defaultBranch=main"}, args...)...)
}

func TestDist(t *testing.T) {
	dir := project(t)
	command(t, dir, "scripts/dist")
	dist := filepath.Join(dir, "dist")
	command(t, dist, "sha256sum", "--check", "--strict", "SHA256SUMS")
	sums := read(t, filepath.Join(dist, "SHA256SUMS"))
	expect.Equal(t, strings.Count(sums, "\n"), 2, "SHA256SUMS", sums)
	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		name := "tdf_release-v7_linux_" + arch
		expect.Equal(t, strings.Fields(command(t, dist, "tar", "-tzf", name+".tar.gz")), inArchive(name), "packed")
		command(t, dist, "tar", "-xzf", name+".tar.gz")
		checkStatic(t, filepath.Join(dist, name, "tdf-x"), machine)
	}
	out := expect.Result(exec.Command(filepath.Join(dist, "tdf_release-v7_linux_"+runtime.GOARCH, "tdf-x")).CombinedOutput()).Value(t)
	expect.Equal(t, string(out), "release-v7\n")

	// The same commit gives the same archives, even if the directory, the umask and the times of the files differ.
	other := filepath.Join(t.TempDir(), "other", "place")
	must(t, os.MkdirAll(filepath.Dir(other), 0o755))
	command(t, filepath.Dir(other), "sh", "-c", "umask 077; git clone --quiet '"+dir+"' '"+other+"'; cd '"+other+"'; umask 002; TZ=Asia/Tokyo GOFLAGS=-race scripts/dist")
	expect.Equal(t, read(t, filepath.Join(other, "dist", "SHA256SUMS")), sums, "sums differ")

	write(t, filepath.Join(dir, "README.md"), 0o644, "changed")
	if out := command(t, dir, "scripts/dist"); !strings.Contains(out, "tdf_release-v7-dirty_linux_amd64.tar.gz") || strings.Count(out, "\n") != 2 {
		t.Errorf("SHA256SUMS of a changed tree:\n%s", out)
	}
	left, _ := filepath.Glob(filepath.Join(dist, "*"))
	expect.True(t, len(left) == 3, "dist/ has", left)
}

func inArchive(name string) []string {
	var all []string
	for _, file := range []string{"", "LICENSE", "README.md", "configs/", "configs/x.cfg", "deploy/", "deploy/tool", "docs/", "docs/page.txt", "tdf-x"} {
		all = append(all, name+"/"+file)
	}
	return all
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

func TestDistWithoutRepository(t *testing.T) {
	dir := project(t)
	must(t, os.RemoveAll(filepath.Join(dir, ".git")))
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "scripts/dist"))
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	out, err := cmd.CombinedOutput()
	expect.Fails(t, err, "")
	expect.Contains(t, string(out), "dist: not a clone")
}
