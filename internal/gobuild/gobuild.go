// Package gobuild builds commands for tests.
package gobuild

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// sources makes go list print the files of the packages of this module on which a command depends. The module's own
// directory is left out: it changes with each git command, and every test that builds commands imports its package.
const sources = `{{$dir := .Dir}}{{with .Module}}{{if and .Main (ne $dir .Dir)}}` +
	`{{range $.GoFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}{{range $.EmbedFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}{{end}}{{end}}`

// shared has the commands that tests have built, below the root of the module. go build does not link one again that
// has not changed.
const shared = "bin/test"

// Build builds commands as go build -o OUTPUT COMMAND... does in a directory, without symbol tables and debug
// information. The tests have already compiled the packages, which scripts/build would compile again with its flags.
// Call Build while a test runs: then Go's test cache notes the directories that Build reads, and runs the test again
// after a change of the commands' sources.
func Build(dir, output string, commands ...string) error {
	if err := link(dir, output, commands); err != nil {
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

// link links the commands in the shared directory, one test at a time, and copies them. A command that is a file is not
// shared.
func link(dir, output string, commands []string) error {
	build := func(to string) error {
		_, err := run(dir, append([]string{"build", "-ldflags=-s -w", "-o", to}, commands...))
		return err
	}
	root, err := run(dir, []string{"list", "-m", "-f", "{{.Dir}}"})
	if err != nil {
		return err
	}
	common := filepath.Join(strings.TrimSpace(root), shared)
	if strings.HasSuffix(commands[0], ".go") || os.MkdirAll(common, 0o755) != nil {
		return build(output)
	}
	lock, err := os.OpenFile(filepath.Join(common, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return build(output)
	}
	defer lock.Close() // which ends the lock
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	if err := build(common + "/"); err != nil {
		return err
	}
	if strings.HasSuffix(output, "/") {
		if err := os.MkdirAll(output, 0o755); err != nil {
			return err
		}
	}
	var files []string
	for _, command := range commands {
		files = append(files, filepath.Join(common, filepath.Base(command)))
	}
	// Go's test cache does not note what cp reads.
	out, err := exec.Command("cp", append(files, output)...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("copy commands: %w\n%s", err, out)
	}
	return err
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
