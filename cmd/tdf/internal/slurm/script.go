package slurm

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/tdf-framework/tdf/internal/task"
)

// maxScript is the size of the largest script, in bytes, as in Slurm.
const maxScript = 4 << 20

// readScript reads the batch script: --wrap, a file, or stdin.
func (j *job) readScript(rest []string) error {
	name := "sbatch"
	switch {
	case j.wrap != "" && len(rest) > 0:
		return errors.New("script arguments are not permitted with the --wrap option")
	case j.wrap != "":
		name = "wrap"
		j.command = "(null)"
		j.script = "#!/bin/sh\n# This script was created by sbatch --wrap.\n\n" + j.wrap + "\n"
	case len(rest) > 0:
		path, err := j.find(rest[0])
		if err != nil {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return fmt.Errorf("unable to open file %s: %w", rest[0], err)
		}
		defer f.Close()
		name, j.args, j.command = filepath.Base(path), rest[1:], path
		err = j.read(f)
		if err != nil {
			return err
		}
	default:
		j.command = "(null)"
		err := j.read(j.a.Stdin)
		if err != nil {
			return err
		}
	}
	if j.name == "" {
		j.name = name
	}
	return checkScript(j.script)
}

func (j *job) read(from io.Reader) error {
	b, err := io.ReadAll(io.LimitReader(from, maxScript+1))
	if len(b) > maxScript {
		err = fmt.Errorf("the batch script is larger than %d bytes", maxScript)
	}
	j.script = string(b)
	return err
}

// find returns the path of a script: in the directory of the job, or in $PATH.
func (j *job) find(name string) (string, error) {
	path := name
	switch {
	case filepath.IsAbs(name):
	case filepath.IsAbs(j.dir):
		path = filepath.Join(j.dir, name)
	default:
		path = filepath.Join(j.a.Path("."), j.dir, name)
	}
	_, err := os.Stat(path)
	if err != nil && !strings.Contains(name, "/") {
		for _, dir := range filepath.SplitList(j.a.Getenv("PATH")) {
			info, err := os.Stat(filepath.Join(dir, name))
			if err == nil && info.Mode().IsRegular() {
				return filepath.Join(dir, name), nil
			}
		}
	}
	if err != nil {
		return "", fmt.Errorf("unable to open file %s", name)
	}
	return filepath.Abs(path)
}

// checkScript refuses what Slurm refuses.
func checkScript(text string) error {
	first, _, _ := strings.Cut(text, "\n")
	switch {
	case text == "":
		return errors.New("batch script is empty")
	case strings.TrimSpace(text) == "":
		return errors.New("batch script contains only whitespace")
	case !strings.HasPrefix(text, "#!"):
		return errors.New("this does not look like a batch script: the first line must start with #! followed by the " +
			"path to an interpreter, for instance #!/bin/sh")
	case strings.ContainsRune(text, 0):
		return errors.New("the batch script contains a NUL character")
	case strings.Contains(text, "\r\n"):
		return errors.New(`batch script contains DOS line breaks (\r\n) instead of expected UNIX line breaks (\n)`)
	case len(strings.TrimSpace(first)) == len("#!"):
		return errors.New("the first line of the batch script names no interpreter")
	}
	return nil
}

// directives returns the options of the lines #SBATCH, up to the first command of the script.
func directives(script string) (options []string, err error) {
	number := 0
	for line := range strings.Lines(script) {
		number++
		rest, begins := strings.CutPrefix(strings.TrimSpace(line), "#SBATCH")
		switch {
		case begins && line[0] == '#':
			words, err := task.SplitInput(cutComment(rest))
			if err != nil {
				return nil, fmt.Errorf("line %d of the script: %w", number, err)
			}
			options = append(options, words...)
		case strings.TrimSpace(line) != "" && rest[0] != '#':
			return options, nil
		}
	}
	return options, nil
}
