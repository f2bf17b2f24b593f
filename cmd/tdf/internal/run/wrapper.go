package run

import (
	"fmt"
	"strings"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/sweep"
)

// A wrapper is what a shell does around a command: it writes the outputs into files, reads stdin from a file, and puts
// the number of the slot into words, because only the worker knows it. Values are arguments of the shell, and so never
// part of its script.
type wrapper struct {
	output, errors *template                 // of the names of files; nil for none
	stdin          func(number int64) string // nil for none
}

// around returns the words of a command with its wrapper.
func (w *wrapper) around(words []word, row *sweep.Row, number int64) ([]string, error) {
	hasSlot := false
	for _, word := range words {
		hasSlot = hasSlot || len(word) > 1
	}
	if w.output == nil && w.errors == nil && w.stdin == nil && !hasSlot {
		return plain(words), nil
	}
	var args []string
	argument := func(text string) string {
		args = append(args, text)
		return fmt.Sprintf("${%d}", len(args))
	}
	script := []string{"exec"}
	for _, word := range words {
		parts := make([]string, len(word))
		for i, text := range word {
			parts[i] = argument(text)
		}
		script = append(script, `"`+strings.Join(parts, "$TDF_SLOT")+`"`)
	}
	if w.stdin != nil {
		script = append(script, `<"`+argument(w.stdin(number))+`"`)
	}
	files := [2]string{}
	for i, t := range []*template{w.output, w.errors} {
		if t == nil {
			continue
		}
		name, err := t.one(row, number)
		if err != nil {
			return nil, err
		}
		files[i] = name
		to := []string{">", "2>"}[i] + `"` + argument(name) + `"`
		if i == 1 && name == files[0] {
			to = "2>&1"
		}
		script = append(script, to)
	}
	return append([]string{"sh", "-c", strings.Join(script, " "), "sh"}, args...), nil
}

// one returns the only word of a template for a row, which names a file or directory.
func (t *template) one(row *sweep.Row, number int64) (string, error) {
	words, err := t.fill(row, number)
	if err != nil {
		return "", err
	}
	name := strings.Join(plain(words), " ")
	if name == "" || strings.ContainsRune(name, 0) {
		return "", cli.Usagef("input %d: %q is no name of a file", number, name)
	}
	return name, nil
}
