package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"gopkg.in/ini.v1"

	"github.com/tdf-framework/tdf/internal/lazy"
)

// An entry is a key of a file. Its value is the text after = or :, without leading and trailing white space.
type entry struct{ section, name, value string }

// maxFile is the maximum size of a file in bytes. The limit protects against a wrong path, such as a device or a log.
// It also limits the time for parsing, because the time of ini.v1 grows with the square of the number of keys.
const maxFile = 1 << 16

var (
	header  = lazy.Regexp(`^\[[^\[\]]+\]$`)
	keyLine = lazy.Regexp(`^(\w+)\s*[=:]\s*(.*)$`)
)

// iniOptions make ini.v1 keep duplicate sections and keys, so that parse can refuse them.
var iniOptions = ini.LoadOptions{
	InsensitiveKeys:        true,
	AllowNonUniqueSections: true,
	AllowShadows:           true, AllowDuplicateShadowValues: true,
}

func readFile(path string) ([]byte, error) {
	// without O_NONBLOCK, opening a named pipe would wait for a writer
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, unreadable(path, err)
	}
	defer f.Close()
	// reading a directory fails anyway
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() && !info.IsDir() {
		return nil, unreadable(path, cmp.Or(err, errNotRegular))
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, unreadable(path, err)
	}
	if len(data) > maxFile {
		return nil, &Error{
			Source:  path,
			Problem: fmt.Sprintf("the file has more than %d bytes; expected a configuration file", maxFile),
		}
	}
	return bytes.TrimPrefix(data, []byte("\ufeff")), nil // an editor may begin the file with a byte order mark
}

var errNotRegular = errors.New("not a regular file")

func unreadable(path string, err error) error {
	reason := err
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		reason = pe.Err // without the path, because Source contains it
	}
	return &Error{Source: path, Err: err, Problem: "cannot be read: " + reason.Error() +
		"; expected a configuration file"}
}

// parse returns the entries of a file. It refuses unknown and duplicate sections and keys. Its errors do not quote
// lines, because a line may contain a password.
func parse(source string, data []byte) ([]entry, error) {
	fail := func(section, key, problem string) ([]entry, error) {
		return nil, &Error{Source: source, Section: section, Key: key, Problem: problem}
	}
	lines, err := prepare(source, data)
	if err != nil {
		return nil, err
	}
	file, err := ini.LoadSources(iniOptions, lines)
	if err != nil { // the text of err may contain a password
		return fail("", "", "not an INI file; expected lines of [section] and key=value")
	}
	var entries []entry
	for _, section := range file.Sections()[1:] { // ini.v1 adds an empty first section
		name := section.Name()
		switch same, _ := file.SectionsByName(name); {
		case len(namesIn(name)) == 0:
			return fail(name, "", "unknown section; known sections: ["+strings.Join(sections(), "], [")+"]")
		case len(same) > 1:
			return fail(name, "", "the section is in the file twice; put its keys together")
		}
		for _, k := range section.Keys() {
			switch {
			case find(name, k.Name()) == nil:
				return fail(name, k.Name(), "unknown key; known keys: "+strings.Join(namesIn(name), ", "))
			case len(k.ValueWithShadows()) > 1:
				return fail(name, k.Name(), "the key is in its section twice; keep one")
			}
			entries = append(entries, entry{name, k.Name(), k.Value()[len(marker):]})
		}
	}
	return entries, nil
}

// marker is put before each value, because ini.v1 does not report a duplicate key if its value is empty.
const marker = "="

// prepare checks each line, because ini.v1 accepts invalid lines (text after a section, quoted keys), and because its
// errors contain no line numbers. It puts each value in backquotes, so that ini.v1 neither changes the value nor
// continues it on the next line.
func prepare(source string, data []byte) ([]byte, error) {
	var lines bytes.Buffer
	number, inSection := 0, false
	for line := range bytes.Lines(bytes.TrimPrefix(data, []byte("\uFEFF"))) {
		number++
		line := strings.Trim(string(line), " \t\r\n") // other white space is kept, because it may belong to a password
		if problem := lineProblem(line, inSection); problem != "" {
			return nil, &Error{Source: source, Problem: fmt.Sprintf("line %d: %s", number, problem)}
		}
		inSection = inSection || strings.HasPrefix(line, "[")
		lines.WriteString(keyLine().ReplaceAllString(line, "$1=`"+marker+"$2`") + "\n")
	}
	return lines.Bytes(), nil
}

// lineProblem says what is wrong with a line, or returns "". For lines after the first section header, inSection is
// true.
func lineProblem(line string, inSection bool) string {
	control := func(r rune) bool { return unicode.IsControl(r) && r != '\t' }
	switch {
	case !utf8.ValidString(line):
		return "not UTF-8 text; save the file as UTF-8"
	case strings.ContainsFunc(line, control):
		return "the line contains a control character; expected plain text"
	case line == "" || line[0] == '#' || line[0] == ';' || header().MatchString(line):
		return ""
	case line[0] == '[':
		return "the line begins with [ but is not a [section]; remove the text after the ]"
	case !keyLine().MatchString(line):
		return "expected [section], key=value, or a comment that begins with # or ;"
	case !inSection:
		return "the key comes before the first [section]"
	}
	return ""
}
