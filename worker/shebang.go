package worker

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/tdf-framework/tdf/internal/firstline"
)

// shebang returns the interpreter in a script's first line, and the text after the interpreter. To the kernel that
// text is one argument, even if it has several words.
func shebang(head []byte) (interpreter, argument string, ok bool) {
	line, _, _ := bytes.Cut(head, []byte("\n"))
	rest, ok := bytes.CutPrefix(line, []byte("#!"))
	rest = bytes.Trim(rest, " \t")
	if i := bytes.IndexAny(rest, " \t"); i >= 0 {
		rest, line = rest[:i], bytes.TrimLeft(rest[i:], " \t")
		return string(rest), string(line), ok
	}
	return string(rest), "", ok
}

// checkFirstLine checks what the kernel and env would make of a script's first line, such as #!/usr/bin/env python3.
// The command env itself starts on every host. Without this check, a missing interpreter would count as a failure of
// the program. The caller passes the program's environment as env.
func (s *script) checkFirstLine(path, dir string, env []string) error {
	head, err := s.readHead(path)
	if err != nil {
		return nil // the start of run.sh will fail with the same error
	}
	if err := firstline.Check(head); err != nil {
		return err
	}
	name := envFinds(shebang(head))
	search, known := pathOf(env)
	switch {
	case name == "", !known, s.inPath(name, search, dir):
		return nil
	}
	return Unfit(fmt.Errorf("run.sh asks env for the interpreter %q, which this worker does not have in its PATH (%s)",
		name, search))
}

// envFinds returns the command that env must find. An option -S may precede the command. envFinds returns "" if env has
// other options, variables, or words in quotes.
func envFinds(interpreter, argument string, script bool) string {
	if !script || interpreter != "/usr/bin/env" && interpreter != "/bin/env" {
		return ""
	}
	name := argument
	if rest, split := strings.CutPrefix(argument, "-S"); split {
		name = ""
		if words := strings.Fields(rest); len(words) > 0 {
			name = words[0]
		}
	}
	if strings.HasPrefix(name, "-") || strings.ContainsAny(name, " \t=$\\'\"#") {
		return ""
	}
	if strings.Contains(name, "/") && !filepath.IsAbs(name) {
		return "" // a file of the program
	}
	return name
}

// pathOf returns the value of PATH. If PATH is set several times, the last value counts.
func pathOf(env []string) (path string, ok bool) {
	for _, variable := range slices.Backward(env) {
		if path, ok = strings.CutPrefix(variable, "PATH="); ok {
			return path, true
		}
	}
	return "", false
}

// inPath reports whether env would find the command when it runs in dir.
func (s *script) inPath(name, path, dir string) bool {
	if filepath.IsAbs(name) {
		return s.mayRun(name)
	}
	return slices.ContainsFunc(strings.Split(path, ":"), func(in string) bool {
		if !filepath.IsAbs(in) {
			in = filepath.Join(dir, in)
		}
		return s.mayRun(filepath.Join(in, name))
	})
}

// mayRun reports whether the program may be able to execute a file.
func (s *script) mayRun(path string) bool {
	info, err := os.Stat(path)
	switch {
	case err == nil:
		return !info.IsDir() && info.Mode()&0o111 != 0
	case errors.Is(err, fs.ErrPermission):
		// on a file system of another machine, another user may have rights that root does not have
		return s.host.OtherUser()
	}
	return !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR)
}
