package worker

import (
	"fmt"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tdf-framework/tdf/config"
)

const maxName = 200 // bytes

// CheckName says what is wrong with a worker's name. It stands in Redis, in logs, and in the names
// of files: 1 to 200 bytes without a slash, a control character, or a dot at its beginning.
func CheckName(name string) error {
	problem := ""
	switch {
	case name == "":
		problem = "is empty"
	case len(name) > maxName:
		problem = fmt.Sprintf("has %d bytes; at most %d are allowed", len(name), maxName)
	case !utf8.ValidString(name):
		problem = "is not valid UTF-8"
	case strings.ContainsFunc(name, unicode.IsControl):
		problem = "has a control character in it"
	case strings.Contains(name, "/"):
		problem = "has a slash in it"
	case name[0] == '.':
		problem = "begins with a dot"
	default:
		return nil
	}
	return fmt.Errorf("the worker's name %.50q %s", name, problem)
}

// checkFilenames: in one file the two outputs could not be told apart.
func checkFilenames(cfg config.Worker) error {
	if filepath.Clean(cfg.TaskOutputFilename) != filepath.Clean(cfg.TaskErrorFilename) {
		return nil
	}
	return &config.Error{
		Source: "configuration", Section: "worker", Key: "task_error_filename",
		Problem: fmt.Sprintf("%q is what task_output_filename is, too; expected another file", cfg.TaskErrorFilename),
	}
}
