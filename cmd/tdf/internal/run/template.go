package run

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/sweep"
)

// A template is a command whose words may contain placeholders, such as {} and {rate}. A value becomes a part of a word
// as it is, because no shell reads the words.
type template struct {
	words [][]piece
	named bool // the columns have names, so {} alone stands for the only column
}

// A piece of a word is a text, or a placeholder.
type piece struct {
	text   string
	number bool   // {#}
	name   string // of the column; "" for {}
	change string // ".", "/", "//" or "/."
	isHole bool
}

// A hole is a placeholder: a name or nothing, and a change. {{name}} stands for the text {name}.
var hole = regexp.MustCompile(`\{\{[A-Za-z0-9_.#/-]*\}\}|\{(#|[A-Za-z0-9_-][A-Za-z0-9_.-]*?|)(//|/\.|/|\.|)\}`)

// parse parses a command. If it has no placeholder, and the columns have no names, the values follow the command.
func parse(words []string, named bool) *template {
	t := &template{named: named}
	holes := false
	for _, word := range words {
		pieces := parseWord(word)
		holes = holes || slices.ContainsFunc(pieces, func(p piece) bool { return p.isHole })
		t.words = append(t.words, pieces)
	}
	if !holes && !named {
		t.words = append(t.words, []piece{{isHole: true}})
	}
	return t
}

func parseWord(word string) (pieces []piece) {
	at := 0
	for _, m := range hole.FindAllStringSubmatchIndex(word, -1) {
		if m[0] > at {
			pieces = append(pieces, piece{text: word[at:m[0]]})
		}
		at = m[1]
		if m[2] < 0 { // {{name}}
			pieces = append(pieces, piece{text: word[m[0]+1 : m[1]-1]})
			continue
		}
		name := word[m[2]:m[3]]
		pieces = append(pieces, piece{isHole: true, number: name == "#", name: name, change: word[m[4]:m[5]]})
	}
	if at < len(word) {
		pieces = append(pieces, piece{text: word[at:]})
	}
	return pieces
}

// uses reports whether the command contains a placeholder for a value.
func (t *template) uses() bool {
	for _, pieces := range t.words {
		if slices.ContainsFunc(pieces, func(p piece) bool { return p.isHole && !p.number }) {
			return true
		}
	}
	return false
}

// fill returns the words of the command for a row. A word that is {} alone becomes one word for each value.
func (t *template) fill(row *sweep.Row, number int64) ([]string, error) {
	if t.named && !t.uses() {
		return nil, cli.Usagef("the command uses no column: write {%s} where the value belongs; the columns are %s",
			row.Params[0].Name, names(row))
	}
	var words []string
	for _, pieces := range t.words {
		if !t.named && slices.Equal(pieces, []piece{{isHole: true}}) {
			for _, p := range row.Params {
				words = append(words, p.Text)
			}
			continue
		}
		var word strings.Builder
		for _, p := range pieces {
			text, err := t.value(p, row, number)
			if err != nil {
				return nil, err
			}
			word.WriteString(text)
		}
		words = append(words, word.String())
	}
	return words, nil
}

func (t *template) value(p piece, row *sweep.Row, number int64) (string, error) {
	switch {
	case !p.isHole:
		return p.text, nil
	case p.number:
		return strconv.FormatInt(number, 10), nil
	case p.name == "" && t.named && len(row.Params) > 1:
		return "", cli.Usagef("the placeholder {%s} has no name, and the rows have several columns: want one of %s",
			p.change, names(row))
	case p.name == "":
		var all []string
		for _, v := range row.Params {
			all = append(all, changed(v.Text, p.change))
		}
		return strings.Join(all, " "), nil
	}
	// a name may end with the same characters as a change
	for _, v := range row.Params {
		if v.Name == p.name+p.change {
			return v.Text, nil
		}
	}
	for _, v := range row.Params {
		if v.Name == p.name {
			return changed(v.Text, p.change), nil
		}
	}
	known := names(row)
	if !t.named {
		known = "{}, {.}, {/}, {//}, {/.} and {#}"
		if len(row.Params) > 1 {
			known += ", and {1}, {2} for the values of one source"
		}
	}
	return "", cli.Usagef("unknown placeholder {%s}: want %s; write {{%s}} for the text {%s}", p.name+p.change, known,
		p.name, p.name)
}

func names(row *sweep.Row) string {
	var all []string
	for _, p := range row.Params {
		all = append(all, "{"+p.Name+"}")
	}
	return strings.Join(all, ", ")
}

// changed returns a part of a path: without its extension (.), its last element (/), the directory before it (//), or
// its last element without the extension (/.).
func changed(path, change string) string {
	dir, base := ".", path
	i := strings.LastIndexByte(path, '/')
	if i >= 0 {
		dir, base = path[:i], path[i+1:]
	}
	stem := base
	dot := strings.LastIndexByte(base, '.')
	if dot > 0 {
		stem = base[:dot]
	}
	switch change {
	case ".":
		return path[:len(path)-len(base)] + stem
	case "/":
		return base
	case "//":
		if i == 0 {
			return "/"
		}
		return dir
	case "/.":
		return stem
	}
	return path
}

// inputOf returns the input of the task that runs a command.
func inputOf(words []string) (string, error) {
	quoted := make([]string, len(words))
	for i, w := range words {
		if strings.ContainsRune(w, 0) {
			return "", fmt.Errorf("the argument %q has a NUL byte, which no program can get", w)
		}
		quoted[i] = sweep.Quote(w)
	}
	return strings.Join(quoted, " "), nil
}
