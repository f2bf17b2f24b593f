package retention

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"
)

// ErrShared means that a configured file name has no $taskId. Rounds share that file, so it never counts as old, and is
// never removed.
var ErrShared = errors.New("lacks $taskId: its files are never removed")

// A pattern is a configured file name, relative to a directory.
type pattern struct {
	base string // an absolute path; links in it are followed, because the administrator controls it
	dirs []part // below base
	text string // the name of the file
	file part
}

// A part is one element of a pattern: the name of a file or of a directory.
type part struct {
	text   string
	name   *regexp.Regexp // nil if only text itself matches
	fields []int          // for each submatch, the index of its placeholder
}

// values holds the values of the placeholders, in the order of the slice placeholders.
type values [5]string

// again is the placeholder for the number of the execution of a round.
const again = "$again"

var placeholders = []string{"$program", "$worker", "$taskId", "$round", again}

// expressions are the regular expressions of the placeholders: names without slashes, and numbers.
var expressions = []string{
	`([^/.\-[:cntrl:]][^/[:cntrl:]]*)`,
	`([^/.[:cntrl:]][^/[:cntrl:]]*)`,
	`(0|[1-9][0-9]{0,18})`,
	`(0|[1-9][0-9]{0,18})`,
	`((?:~[1-9][0-9]{0,3})?)`,
}

var placeholder = regexp.MustCompile(`\$program|\$worker|\$taskId|\$round|\$again`)

// IsShared reports whether rounds share the file of a configured name. They share it if the name has no $taskId.
func IsShared(text string) bool { return !strings.Contains(filepath.Clean(text), "$taskId") }

// Execution returns the configured name for the n-th execution of a round, counted from 1. For example, the second
// execution has the name x-$round~2.out instead of x-$round.out. The name still contains the placeholders.
//
// A round is executed again, with the same number, if Redis lost data and then gave out the task's id again.
func Execution(text string, n int64) string {
	mark := ""
	if n > 1 {
		mark = fmt.Sprintf("~%d", n)
	}
	return strings.Replace(insertAgain(text), again, mark, 1)
}

// insertAgain inserts the placeholder $again before the extension.
func insertAgain(text string) string {
	stem, extension := cutExtension(text)
	return stem + again + extension
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

// parse parses a file name of the configuration.
func parse(dir, text string) (pattern, error) {
	if IsShared(text) {
		return pattern{}, fmt.Errorf("%q %w", text, ErrShared)
	}
	base, below := Split(dir, text)
	p := pattern{base: base, text: filepath.Base(below)}
	texts := strings.Split(below, "/")
	for _, text := range texts[:len(texts)-1] {
		p.dirs = append(p.dirs, parsePart(text))
	}
	p.file = parsePart(insertAgain(p.text))
	return p, nil
}

func parsePart(text string) part {
	if !placeholder.MatchString(text) {
		return part{text: text}
	}
	p := part{text: text}
	var expression strings.Builder
	rest := text
	for rest != "" {
		at := placeholder.FindStringIndex(rest)
		if at == nil {
			at = []int{len(rest), len(rest)}
		}
		expression.WriteString(regexp.QuoteMeta(rest[:at[0]]))
		for i, name := range placeholders {
			if rest[at[0]:at[1]] == name {
				expression.WriteString(expressions[i])
				p.fields = append(p.fields, i)
			}
		}
		rest = rest[at[1]:]
	}
	p.name = regexp.MustCompile(`\A(?:` + expression.String() + `)\z`)
	return p
}

// match reports whether a name matches. It returns v with the values of the placeholders in the name. A placeholder
// must have the same value everywhere.
func (p part) match(name string, v values) (values, bool) {
	if p.name == nil {
		return v, name == p.text
	}
	found := p.name.FindStringSubmatch(name)
	if found == nil || !utf8.ValidString(name) {
		return v, false
	}
	for i, field := range p.fields {
		if v[field] != "" && v[field] != found[i+1] {
			return v, false
		}
		v[field] = found[i+1]
	}
	return v, true
}

// ofTask reports whether the name of a directory contains the id of a task, or the number of a round.
func (p part) ofTask() bool {
	return strings.Contains(p.text, "$taskId") || strings.Contains(p.text, "$round")
}

// beside returns the pattern of a directory that is kept beside the file.
func (p *pattern) beside(extension string) part {
	return parsePart(insertAgain(Beside(p.text, extension)))
}
