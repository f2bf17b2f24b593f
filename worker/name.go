package worker

import (
	"fmt"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tdf-framework/tdf/internal/config"
)

const maxName = 200 // bytes

// CheckName returns an error if a worker cannot have the name. A name has 1 to 200 bytes of UTF-8, no slash, no control
// character, and no dot at its beginning. It is used in Redis, in logs and in file names.
func CheckName(name string) error {
	problem := ""
	switch {
	case name == "":
		problem = "is empty"
	case len(name) > maxName:
		problem = fmt.Sprintf("has %d bytes, more than %d", len(name), maxName)
	case !utf8.ValidString(name):
		problem = "is not valid UTF-8"
	case strings.ContainsFunc(name, unicode.IsControl):
		problem = "contains a control character"
	case strings.Contains(name, "/"):
		problem = "contains a slash"
	case name[0] == '.':
		problem = "begins with a dot"
	default:
		return nil
	}
	return fmt.Errorf("the worker's name %.50q %s", name, problem)
}

// checkFilenames returns an error if stdout and stderr have the same file name.
func checkFilenames(cfg config.Worker) error {
	if filepath.Clean(cfg.TaskOutputFilename) != filepath.Clean(cfg.TaskErrorFilename) {
		return nil
	}
	return &config.Error{
		Source: "configuration", Section: "worker", Key: "task_error_filename",
		Problem: fmt.Sprintf("%q is the same file as task_output_filename; expected another file name",
			cfg.TaskErrorFilename),
	}
}
