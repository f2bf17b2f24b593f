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
)

// shebang returns the interpreter that a script's first line names, and what follows it: to the
// kernel that is one argument, however many words it has.
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

// checkEnv looks for what a first line such as #!/usr/bin/env python3 asks for: env itself starts on
// every host, and where it then finds nothing, the round would have failed. env is the program's.
func (s *script) checkEnv(path, dir string, env []string) error {
	head, err := readHead(path)
	if err != nil {
		return nil // what is wrong shows when it is started
	}
	name := envFinds(shebang(head))
	search, known := pathOf(env)
	switch {
	case name == "", !known, s.inPath(name, search, dir):
		return nil
	case strings.HasSuffix(name, "\r"):
		return errCRLF(name)
	}
	return unfit(fmt.Errorf("run.sh asks env for the interpreter %q, which this worker does not have in its PATH (%s)", name, search))
}

func errCRLF(interpreter string) error {
	return fmt.Errorf("run.sh has the line ends of Windows (CRLF): its first line asks for %q; convert it to LF", interpreter)
}

// envFinds returns what env is asked to find, with or without -S before it. It is "" where env has
// other options, or variables, or words in quotes: what it makes of them is its own business.
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
		return "" // the program's own
	}
	return name
}

// pathOf: of several, the last holds.
func pathOf(env []string) (path string, ok bool) {
	for _, variable := range slices.Backward(env) {
		if path, ok = strings.CutPrefix(variable, "PATH="); ok {
			return path, true
		}
	}
	return "", false
}

// inPath looks as env does that runs in dir.
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

// mayRun is false where the program cannot execute the file for sure.
func (s *script) mayRun(path string) bool {
	info, err := os.Stat(path)
	switch {
	case err == nil:
		return !info.IsDir() && info.Mode()&0o111 != 0
	case errors.Is(err, fs.ErrPermission):
		return s.host.OtherUser() // who may enter what is closed to us: root, on a file system of another machine
	}
	return !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR)
}
