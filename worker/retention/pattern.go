package retention

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"
)

// ErrShared is wrapped when a configured file name has no $taskId: it may mean one file for all
// rounds, which is never old. Nothing of that name is removed.
var ErrShared = errors.New("has no $taskId in it: its files are not removed")

// A pattern is a configured file name, relative to a directory.
type pattern struct {
	base string // an absolute path, which is the administrator's: links in it are followed
	dirs []part // below base
	file part
}

// A part of a pattern is the name of a file or a directory.
type part struct {
	text   string
	name   *regexp.Regexp // nil: text
	fields []int          // which of the values each of its submatches is
}

// Values of the placeholders, in the order of their names.
type values [4]string

var placeholders = []string{"$program", "$worker", "$taskId", "$round"}

// What the placeholders stand for: names without slashes, and numbers as they are printed.
var expressions = []string{
	`([^/.\-[:cntrl:]][^/[:cntrl:]]*)`,
	`([^/.[:cntrl:]][^/[:cntrl:]]*)`,
	`(0|[1-9][0-9]{0,18})`,
	`(0|[1-9][0-9]{0,18})`,
}

var placeholder = regexp.MustCompile(`\$program|\$worker|\$taskId|\$round`)

// parse takes a file name of the configuration.
func parse(dir, text string) (pattern, error) {
	clean := filepath.Clean(text)
	if !strings.Contains(clean, "$taskId") {
		return pattern{}, fmt.Errorf("%q %w", text, ErrShared)
	}
	p := pattern{base: dir}
	if filepath.IsAbs(clean) {
		p.base, clean = "/", strings.TrimPrefix(clean, "/")
	}
	texts := strings.Split(clean, "/")
	for len(texts) > 1 && (texts[0] == ".." || p.base != dir && !strings.Contains(texts[0], "$")) {
		p.base, texts = filepath.Join(p.base, texts[0]), texts[1:]
	}
	for _, text := range texts {
		p.dirs = append(p.dirs, parsePart(text))
	}
	last := len(p.dirs) - 1
	p.file, p.dirs = p.dirs[last], p.dirs[:last]
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

// match returns the values with those of this name; a placeholder means the same everywhere.
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

// ofTask: the directory was made for a task or a round.
func (p part) ofTask() bool {
	return strings.Contains(p.text, "$taskId") || strings.Contains(p.text, "$round")
}

// beside is the pattern of a directory that is kept beside an output file.
func (p part) beside(extension string) part {
	stem := p.text
	if own := filepath.Ext(stem); !strings.Contains(own, "$") {
		stem = strings.TrimSuffix(stem, own)
	}
	return parsePart(stem + extension)
}
