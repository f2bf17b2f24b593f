package retention

import (
	"fmt"
	"path/filepath"
	"strings"
)

// IsShared reports whether rounds share the file of a configured name. They share it if the name has no $taskId. A
// shared file never counts as old, and is never removed.
func IsShared(text string) bool { return !strings.Contains(filepath.Clean(text), "$taskId") }

// Execution returns the configured name for the n-th execution of a round, counted from 1. For example, the second
// execution has the name x-$round~2.out instead of x-$round.out. The name still contains the placeholders.
//
// A round is executed again, with the same number, if Redis lost data and then gave out the task's id again.
func Execution(text string, n int64) string {
	if n <= 1 {
		return text
	}
	stem, extension := cutExtension(text)
	return fmt.Sprintf("%s~%d%s", stem, n, extension)
}

// Beside returns the configured name of a directory that is kept beside an output file.
func Beside(text, extension string) string {
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

// Split splits a configured name into two parts. The first part, base, is a directory that the administrator controls:
// dir, or a directory outside of dir. The second part is the rest of the name, below that directory.
func Split(dir, text string) (base, below string) {
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

// ownDirs returns how many directories at the end of a configured path are named after a task or a round. The worker
// makes these directories for its files.
func ownDirs(dirs string) (n int) {
	for ; strings.Contains(filepath.Base(dirs), "$taskId") || strings.Contains(filepath.Base(dirs), "$round"); n++ {
		dirs = filepath.Dir(dirs)
	}
	return n
}
