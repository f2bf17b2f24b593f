package deploytest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// The images run as a user without rights, and are built with the version of Go that go.mod names. The server's image contains
// nothing but what is copied into it.
func TestDockerfile(t *testing.T) {
	t.Parallel()
	text := read(t, filepath.Join(root, "deploy/Dockerfile"))
	stages := regexp.MustCompile(`(?m)^FROM (?:--\S+ )?(\S+) AS (\w+)$`).FindAllStringSubmatchIndex(text, -1)
	expect.MustLen(t, stages, strings.Count(text, "\nFROM "))
	for i, at := range stages {
		image, name, end := text[at[2]:at[3]], text[at[4]:at[5]], len(text)
		if i+1 < len(stages) {
			end = stages[i+1][0]
		}
		stage := text[at[1]:end]
		final := name == "tdf" || name == "worker"
		expect.Equal(t, strings.Contains(stage, "\nUSER 65532:65532\n"), final, name)
		if name == "tdf" {
			expect.Equal(t, image, "scratch", name)
			expect.NotContains(t, stage, "\nRUN", name, image)
		}
		expect.True(t, !strings.HasSuffix(image, ":latest"), image)
		if image != "scratch" {
			expect.Contains(t, image, ":")
		}
	}
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, filepath.Join(root, "go.mod")))[1]
	expect.Contains(t, text, " golang:"+version+"-")
	expect.Contains(t, text, " scripts/build /out\n") // static commands: the image has no libraries
}

// The files that .dockerignore lets into the image's build suffice to build the commands.
func TestDockerignore(t *testing.T) {
	t.Parallel()
	var suffixes []string
	for line := range strings.Lines(read(t, filepath.Join(root, ".dockerignore"))) {
		if suffix, ok := strings.CutPrefix(strings.TrimSpace(line), "!**/*"); ok {
			suffixes = append(suffixes, suffix)
		}
	}
	expect.Equal(t, suffixes, []string{".go", ".lua", ".html", ".css", ".js", ".svg", ".sbatch"})
	const files = `{{if and .Module .Module.Main}}{{range .GoFiles}}{{println .}}{{end}}{{range .EmbedFiles}}{{println .}}{{end}}{{range .SFiles}}{{println .}}{{end}}{{end}}`
	built := strings.Fields(command(t, root, "go", "list", "-deps", "-f", files, "./cmd/..."))
	expect.MustTrue(t, len(built) > 100, built)
	allowed := strings.Fields(read(t, filepath.Join(root, ".dockerignore")))
	for _, name := range built {
		let := slices.Contains(suffixes, filepath.Ext(name)) || slices.Contains(allowed, "!"+name)
		expect.True(t, let, name)
	}
}

// docker is a docker that prints its arguments and the passwords that docker compose would read.
const docker = "#!/bin/sh\necho \"docker $*\"\ncat \"$3\"\n"

// The script makes the passwords once, for this user only, and passes its arguments on.
func TestComposeScript(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "docker"), 0o755, docker)
	script := expect.Result(filepath.Abs(filepath.Join(root, "deploy/compose"))).Value(t)
	secrets := filepath.Join(dir, "secrets of mine")
	run := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), script, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "ENV_FILE="+secrets)
		out, err := cmd.Output()
		if err != nil {
			expect.MustTrue(t, errors.As(err, new(*exec.ExitError)), err)
		}
		return string(out)
	}
	first := run("down", "--volumes")
	found := regexp.MustCompile(`^docker compose --env-file (.+) -f \S+/deploy/compose.yaml down --volumes\nREDIS_PASSWORD=([0-9a-f]{48})\nGRAFANA_PASSWORD=([0-9a-f]{48})\n$`).FindStringSubmatch(first)
	expect.MustTrue(t, found != nil, first)
	expect.MustEqual(t, found[1], secrets, first)
	expect.MustTrue(t, found[2] != found[3], first)
	expect.Equal(t, expect.Result(os.Stat(secrets)).Value(t).Mode(), os.FileMode(0o600))
	t.Setenv("SENTINEL", "1")
	expect.Contains(t, run("ps"), "/deploy/compose.yaml -f "+filepath.Dir(script)+"/compose.sentinel.yaml ps\n")
	second := run()
	expect.Contains(t, second, " up --build --detach\n")
	expect.Contains(t, second, "REDIS_PASSWORD="+found[2]+"\n")
	expect.Contains(t, second, "Grafana    http://127.0.0.1:3000")
	expect.Contains(t, read(t, filepath.Join(root, ".gitignore")), "\n.env\n")
}
