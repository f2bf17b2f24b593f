package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"gopkg.in/ini.v1"
)

// An entry is one key as it stands in a file. Its value is everything behind the delimiter but
// the white space at its ends.
type entry struct{ section, name, value string }

// maxFile keeps a wrong path (a device, a log) from filling the memory, and from keeping ini.v1 busy,
// whose time grows with the square of the number of keys.
const maxFile = 1 << 16

var (
	header  = regexp.MustCompile(`^\[[^\[\]]+\]$`)
	keyLine = regexp.MustCompile(`^(\w+)\s*[=:]\s*(.*)$`)
)

// iniOptions make ini.v1 keep what stands twice, for us to notice.
var iniOptions = ini.LoadOptions{
	InsensitiveKeys:        true,
	AllowNonUniqueSections: true,
	AllowShadows:           true, AllowDuplicateShadowValues: true,
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, unreadable(path, err)
	}
	if len(data) > maxFile {
		return nil, &Error{Source: path, Problem: fmt.Sprintf("is larger than %d bytes, which no configuration is", maxFile)}
	}
	return data, nil
}

func unreadable(path string, err error) error {
	reason := err
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		reason = pe.Err // without the path, which the error names anyway
	}
	return &Error{Source: path, Err: err, Problem: "cannot be read: " + reason.Error() + "; expected a configuration file"}
}

// parse splits a file into its entries, all of known sections and keys, each once. An error shows
// no line as it stands: it might be a password.
func parse(source string, data []byte) ([]entry, error) {
	fail := func(section, key, problem string) ([]entry, error) {
		return nil, &Error{Source: source, Section: section, Key: key, Problem: problem}
	}
	lines, err := prepare(source, data)
	if err != nil {
		return nil, err
	}
	file, err := ini.LoadSources(iniOptions, lines)
	if err != nil { // its text would repeat the line
		return fail("", "", "is no INI file; expected lines of [section] and key=value")
	}
	var entries []entry
	for _, section := range file.Sections()[1:] { // the first is what stands before all others: nothing
		name := section.Name()
		switch same, _ := file.SectionsByName(name); {
		case len(namesIn(name)) == 0:
			return fail(name, "", "unknown section; known are ["+strings.Join(sections(), "], [")+"]")
		case len(same) > 1:
			return fail(name, "", "stands twice in the file; put its keys together")
		}
		for _, k := range section.Keys() {
			switch {
			case find(name, k.Name()) == nil:
				return fail(name, k.Name(), "unknown key; known are "+strings.Join(namesIn(name), ", "))
			case len(k.ValueWithShadows()) > 1:
				return fail(name, k.Name(), "stands twice in its section; keep one")
			}
			entries = append(entries, entry{name, k.Name(), k.Value()[len(marker):]})
		}
	}
	return entries, nil
}

// marker begins each value that ini.v1 sees, since it does not count empty ones among those that
// stand twice.
const marker = "="

// prepare checks each line, since ini.v1 lets much pass (text behind a section, quoted keys) and names
// no line in its errors, and puts each value in backquotes: the one form in which ini.v1 takes every
// value as it stands, backquotes included, and never reads on in the next line.
func prepare(source string, data []byte) ([]byte, error) {
	var lines bytes.Buffer
	number, begun := 0, false
	for line := range bytes.Lines(bytes.TrimPrefix(data, []byte("\uFEFF"))) {
		number++
		line := strings.Trim(string(line), " \t\r\n") // no other white space: a password may end in it
		if problem := lineProblem(line, begun); problem != "" {
			return nil, &Error{Source: source, Problem: fmt.Sprintf("line %d: %s", number, problem)}
		}
		begun = begun || strings.HasPrefix(line, "[")
		lines.WriteString(keyLine.ReplaceAllString(line, "$1=`"+marker+"$2`") + "\n")
	}
	return lines.Bytes(), nil
}

// lineProblem is about a line by itself; begun says whether it is in a section.
func lineProblem(line string, begun bool) string {
	control := func(r rune) bool { return unicode.IsControl(r) && r != '\t' }
	switch {
	case !utf8.ValidString(line):
		return "is not UTF-8 text; save the file as UTF-8"
	case strings.ContainsFunc(line, control):
		return "holds a control character; expected plain text"
	case line == "" || line[0] == '#' || line[0] == ';' || header.MatchString(line):
		return ""
	case line[0] == '[':
		return "begins with [ but is no [section]; nothing may follow the ]"
	case !keyLine.MatchString(line):
		return "expected [section], key=value, or a comment that begins with # or ;"
	case !begun:
		return "a key stands before the first [section]"
	}
	return ""
}
