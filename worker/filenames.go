package worker

import (
	"fmt"
	"path/filepath"
	"strings"
)

// isShared reports whether rounds share the file of a configured name. They share it if the name has no $taskId.
func isShared(text string) bool { return !strings.Contains(filepath.Clean(text), "$taskId") }

// ofExecution returns the configured name for the n-th execution of a round, counted from 1. For example, the second
// execution has the name x-$round~2.out instead of x-$round.out. The name still contains the placeholders.
//
// A round is executed again, with the same number, if Redis lost data and then gave out the task's id again.
func ofExecution(text string, n int64) string {
	if n <= 1 {
		return text
	}
	stem, extension := cutExtension(text)
	return fmt.Sprintf("%s~%d%s", stem, n, extension)
}

// beside returns the configured name of a directory that is kept beside an output file.
func beside(text, extension string) string {
	stem, _ := cutExtension(text)
	return stem + extension
}

// cutExtension splits a name before its extension. A text with a placeholder is not an extension.
func cutExtension(text string) (stem, extension string) {
	if extension = filepath.Ext(text); strings.Contains(extension, "$") {
		return text, ""
	}
	return strings.TrimSuffix(text, extension), extension
}

// splitName splits a configured name into two parts. The first part, base, is a directory that the administrator
// controls: dir, or a directory outside of dir. The second part is the rest of the name, below that directory.
func splitName(dir, text string) (base, below string) {
	clean := filepath.Clean(text)
	base = dir
	if filepath.IsAbs(clean) {
		base, clean = "/", strings.TrimPrefix(clean, "/")
	}
	texts := strings.Split(clean, "/")
	for len(texts) > 1 && (texts[0] == ".." || base != dir && !strings.Contains(texts[0], "$")) {
		base, texts = filepath.Join(base, texts[0]), texts[1:]
	}
	return base, strings.Join(texts, "/")
}
