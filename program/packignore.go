package program

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
)

// ignoreFile is the name of a file in a program's directory. It lists patterns for the names of files that are not part
// of the program.
const ignoreFile = ".tdfignore"

// ignore holds the patterns of a .tdfignore, one per line, with the syntax of path.Match. If a pattern has a slash
// before its end, it matches paths relative to the program's directory. A pattern without such a slash matches names in
// all directories. If a pattern ends in a slash, it matches only directories. If a directory matches, everything in it
// is omitted.
type ignore []ignorePattern

type ignorePattern struct {
	glob           string
	path, onlyDirs bool
}

func readIgnore(root *os.Root) (ignore, error) {
	f, err := root.Open(ignoreFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all ignore
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(strings.TrimPrefix(lines.Text(), "\ufeff"))
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		p, err := parseIgnore(text)
		if err != nil {
			return nil, fmt.Errorf("%s, line %d: %q %w", ignoreFile, n, text, err)
		}
		all = append(all, p)
	}
	return all, lines.Err()
}

func parseIgnore(text string) (ignorePattern, error) {
	glob, onlyDirs := strings.CutSuffix(text, "/")
	if below, ok := strings.CutPrefix(glob, "./"); ok {
		glob = "/" + below
	}
	p := ignorePattern{glob: strings.TrimPrefix(glob, "/"), path: strings.Contains(glob, "/"), onlyDirs: onlyDirs}
	_, err := path.Match(p.glob, "")
	switch {
	case strings.HasPrefix(text, "!"):
		return p, errors.New("begins with !, which is not supported")
	case strings.Contains(text, "**"):
		return p, errors.New("contains **, which is not supported; a name without a slash matches in all directories")
	case err != nil || p.glob == "":
		return p, errors.New("is not a valid pattern; *, ? and [a-z] are possible")
	}
	return p, nil
}

func (all ignore) match(name string, isDir bool) bool {
	for _, p := range all {
		text := name
		if !p.path {
			text = path.Base(name)
		}
		if hit, _ := path.Match(p.glob, text); hit && (isDir || !p.onlyDirs) {
			return true
		}
	}
	return false
}
