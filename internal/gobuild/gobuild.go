// Package gobuild builds commands for tests.
package gobuild

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// sources makes go list print the files of the packages of this module on which a command depends. The module's own
// directory is left out: it changes with each git command, and every test that builds commands imports its package.
const sources = `{{$dir := .Dir}}{{with .Module}}{{if and .Main (ne $dir .Dir)}}` +
	`{{range $.GoFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}{{range $.EmbedFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}{{end}}{{end}}`

// Build builds commands as go build -o OUTPUT COMMAND... does in a directory, without symbol tables and debug
// information. The tests have already compiled the packages, which scripts/build would compile again with its flags.
// Call Build while a test runs: then Go's test cache notes the directories that Build reads, and runs the test again
// after a change of the commands' sources.
func Build(dir, output string, commands ...string) error {
	if _, err := run(dir, append([]string{"build", "-ldflags=-s -w", "-o", output}, commands...)); err != nil {
		return err
	}
	files, err := run(dir, append([]string{"list", "-deps", "-f", sources}, commands...))
	if err != nil {
		return err
	}
	var dirs []string
	for file := range strings.Lines(files) {
		dirs = append(dirs, filepath.Dir(file))
	}
	slices.Sort(dirs)
	for _, dir := range slices.Compact(dirs) {
		if _, err := os.ReadDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// run runs go with the GOGC of the Makefile.
func run(dir string, args []string) (string, error) {
	var problems strings.Builder
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Stderr = dir, &problems
	cmd.Env = append(os.Environ(), "GOGC=400")
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s%s", strings.Join(args, " "), err, problems.String(), out)
	}
	return string(out), nil
}
