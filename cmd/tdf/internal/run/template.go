package run

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/sweep"
)

// A template is a command whose words may contain placeholders, such as {} and {rate}. A value becomes a part of a word
// as it is, because no shell reads the words.
type template struct {
	command []string
	named   bool // the columns have names, so {} alone stands for the only column
	literal bool // the command has no placeholders
	unused  bool // the command may leave out the values
	isName  bool // it is not a command, but a name of a file
	context bool // a word with {} in it is repeated for each value
	inShell bool // the value is a line for a shell

	wrap wrapper // what a shell does around the command

	// of the patterns of --fetch, the directory of --wd, and the files of --results; nil if they have no placeholders
	fetch, wd, results *template
	sendEach           []*template // of --send-each
	others             []*template // all templates for which the rows of this one count

	columns []string // the names of the columns for which words are parsed
	words   [][]piece
}

// A piece of a word is a text, or a placeholder.
type piece struct {
	text   string // or the unknown placeholder
	kind   pieceKind
	column int    // index of the column; -1 for {}
	change string // one of changes
}

type pieceKind int

const (
	isText pieceKind = iota
	isValue
	isNumber  // {#}
	isSlot    // {%}
	isUnknown // a text that looks like a placeholder
)

// changes are what may follow the name of a column. The empty one is the first, because a name may end with a change.
var changes = []string{"", ".", "/", "//", "/."}

// parse parses the command for rows with these columns. If it has no placeholder, and the columns have no names, the
// values follow the command.
func (t *template) parse(columns []string) error {
	t.columns, t.words = columns, nil
	var used []piece
	for _, word := range t.command {
		pieces := []piece{{text: word}}
		if !t.literal {
			pieces = t.parseWord(word)
		}
		for _, p := range pieces {
			err := t.check(p)
			if err != nil {
				return err
			}
			if p.kind == isValue || p.kind != isText && !t.named {
				used = append(used, p)
			}
		}
		t.words = append(t.words, pieces)
	}
	switch {
	case len(used) > 0, t.unused:
	case t.named:
		return cli.Usagef("the command uses no column: write {NAME} where the value belongs; the columns are %s", t.names())
	default:
		t.words = append(t.words, []piece{{kind: isValue, column: -1}})
	}
	for _, o := range t.others {
		err := o.parse(columns)
		if err != nil {
			return err
		}
	}
	return nil
}

// parseWord separates the texts and the placeholders of a word. ${x} is for shells, and {{x}} stands for the text {x}.
func (t *template) parseWord(word string) (pieces []piece) {
	var text []byte
	for word != "" {
		taken := 1
		if word[0] == '$' {
			taken += len(word[1:]) - len(strings.TrimLeft(word[1:], "{"))
		}
		p, length := t.placeholder(word)
		_, doubled := t.placeholder(word[1:])
		switch {
		case length > 0:
			if len(text) > 0 {
				pieces, text = append(pieces, piece{text: string(text)}), nil
			}
			pieces, taken = append(pieces, p), length
		case doubled > 0 && word[0] == '{' && strings.HasPrefix(word[1+doubled:], "}"):
			text, taken = append(text, word[1:1+doubled]...), doubled+2
		default:
			text = append(text, word[:taken]...)
		}
		word = word[taken:]
	}
	if len(text) > 0 {
		pieces = append(pieces, piece{text: string(text)})
	}
	return pieces
}

// placeholder returns the placeholder with which a text begins, and its length in the text. Without a placeholder, the
// length is 0.
func (t *template) placeholder(text string) (p piece, length int) {
	rest, begins := strings.CutPrefix(text, "{")
	if !begins {
		return p, 0
	}
	for _, change := range changes {
		for i, name := range t.columns {
			after, found := strings.CutPrefix(rest, name)
			found = found && strings.HasPrefix(after, change+"}")
			if n := len("{") + len(name) + len(change) + len("}"); found && n > length {
				p, length = piece{kind: isValue, column: i, change: change}, n
			}
		}
		if length > 0 {
			return p, length
		}
	}
	inner, _, closed := strings.Cut(rest, "}")
	switch {
	case !closed:
		return p, 0
	case slices.Contains(changes, inner):
		p = piece{kind: isValue, column: -1, change: inner}
	case inner == "#":
		p.kind = isNumber
	case inner == "%":
		p.kind = isSlot
	case t.looksKnown(inner):
		p = piece{kind: isUnknown, text: inner}
	default:
		return p, 0
	}
	return p, len("{}") + len(inner)
}

// looksKnown reports whether a text in braces looks like a placeholder: it has only letters, digits, and the characters
// of changes and of names of columns, or it is a placeholder of GNU parallel. Shells and awk put a blank after a brace.
func (t *template) looksKnown(inner string) bool {
	if strings.HasPrefix(inner, "=") && strings.HasSuffix(inner, "=") {
		return true
	}
	return inner[0] != ' ' && !strings.ContainsFunc(inner, func(c rune) bool {
		return !unicode.In(c, unicode.L, unicode.M, unicode.N) && !strings.ContainsRune("_-.#/", c) &&
			!slices.ContainsFunc(t.columns, func(name string) bool { return strings.ContainsRune(name, c) })
	})
}

// check refuses a placeholder that has no value.
func (t *template) check(p piece) error {
	switch {
	case p.kind == isText:
		return nil
	case p.kind == isSlot && t.isName:
		return cli.Usagef("{%%} is not known before the command runs, so no file or directory can be named by it")
	case len(t.columns) == 0 && !t.named && (p.kind != isNumber && p.kind != isSlot || !t.unused):
		return cli.Usagef("the command has a placeholder, {%s}, and there are no inputs: want --lines, --from, --grid or "+
			"::: VALUE…; with --literal, braces are text", p.inner())
	case p.kind == isUnknown && !t.named && strings.Trim(p.text, "0123456789") == "":
		return cli.Usagef("no value for {%s}: an input has %s; write {{%s}} for the text {%s}", p.text,
			format.Counted(len(t.columns), "value"), p.text, p.text)
	case p.kind == isUnknown:
		return cli.Usagef("unknown placeholder {%s}: want %s; write {{%s}} for the text {%s}%s", p.text, t.names(), p.text,
			p.text, insteadOf(p.text))
	case p.kind == isValue && p.column < 0 && t.named && len(t.columns) != 1:
		return cli.Usagef("the placeholder {%s} has no name, and the rows have several columns: want one of %s; write "+
			"{{%s}} for the text {%s}", p.change, t.names(), p.change, p.change)
	}
	return nil
}

// inner returns what a placeholder without a name has in its braces.
func (p *piece) inner() string {
	switch p.kind {
	case isNumber:
		return "#"
	case isSlot:
		return "%"
	}
	return p.text + p.change
}

// insteadOf says how to do what a placeholder of GNU parallel does.
func insteadOf(inner string) string {
	if strings.HasPrefix(inner, "=") {
		return "; compute the value in the command, as in sh -c '…' - {}"
	}
	return ""
}

// maxNames is the maximum length of the list of columns in an error.
const maxNames = 2000

// names lists the placeholders for values.
func (t *template) names() string {
	if t.named {
		return format.OneLine("{"+strings.Join(t.columns, "}, {")+"}", maxNames)
	}
	known := "{}, {.}, {/}, {//}, {/.}, {#} and {%}"
	if len(t.columns) > 1 {
		known += ", and {1}, {2} for the values of one source"
	}
	return known
}

// input returns the input of the task for a row, and the command as people see it.
func (t *template) input(row *sweep.Row, number int64) (input commandLine, err error) {
	words, err := t.fill(row, number)
	if err != nil {
		return input, err
	}
	input.shown = quoted(plain(words))
	if t.inShell {
		input.shown = row.Params[0].Text
	}
	actual, err := t.wrap.around(words, row, number)
	if err != nil {
		return input, err
	}
	for _, w := range actual {
		if strings.ContainsRune(w, 0) {
			return input, cli.Usagef("input %d: the argument %q has a NUL byte, which no program can get", number, w)
		}
	}
	input.text = quoted(actual)
	if len(input.text) > task.MaxInput {
		return input, cli.Usagef("input %d: the command has %d bytes; want at most %d", number, len(input.text),
			task.MaxInput)
	}
	return input, nil
}

// A commandLine is a command, as a task has it, and as people see it: without what a shell does around it.
type commandLine struct{ text, shown string }

func quoted(words []string) string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = sweep.Quote(w)
	}
	return strings.Join(all, " ")
}

// escapes make a value match itself in a pattern. A comma would separate patterns.
var escapes = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, ",", "?")

// patterns returns the patterns of the files that the command brings back for a row.
func (t *template) patterns(row *sweep.Row, number int64) ([]string, error) {
	escaped := sweep.Row{Params: slices.Clone(row.Params)}
	for i := range escaped.Params {
		escaped.Params[i].Text = escapes.Replace(escaped.Params[i].Text)
	}
	words, err := t.fill(&escaped, number)
	return plain(words), err
}

// meta returns the parameters of a row as the meta of its task. If they are too long, it leaves out those that the
// command does not use, and if the others are too long, all of them: the input of the task has their values.
func (t *template) meta(row *sweep.Row) (meta string, lacks bool) {
	meta = row.JSON()
	if len(meta) <= task.MaxMeta {
		return meta, false
	}
	used := sweep.Row{}
	for i, p := range row.Params {
		uses := func(p piece) bool { return p.kind == isValue && (p.column == i || p.column < 0) }
		if slices.ContainsFunc(slices.Concat(t.words...), uses) {
			used.Params = append(used.Params, p)
		}
	}
	meta = used.JSON()
	if len(meta) > task.MaxMeta {
		return "", true
	}
	return meta, true
}

// A word is the texts between its slots {%}. Most words have none, and so one text.
type word []string

// plain returns the words as people see them.
func plain(words []word) []string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = strings.Join(w, "{%}")
	}
	return all
}

// fill returns the words of the command for a row. A word that is {} alone becomes one word for each value.
func (t *template) fill(row *sweep.Row, number int64) (words []word, err error) {
	sameName := func(column string, p sweep.Param) bool { return column == p.Name }
	if t.words == nil || !slices.EqualFunc(t.columns, row.Params, sameName) {
		var columns []string
		for _, p := range row.Params {
			columns = append(columns, p.Name)
		}
		err = t.parse(columns)
		if err != nil {
			return nil, err
		}
	}
	for _, pieces := range t.words {
		ofAll := func(p piece) bool { return p.kind == isValue && p.column < 0 }
		if !slices.ContainsFunc(pieces, ofAll) || len(pieces) > 1 && !t.context {
			words = append(words, wordOf(pieces, row, row.Params, number))
			continue
		}
		for i := range row.Params {
			words = append(words, wordOf(pieces, row, row.Params[i:i+1], number))
		}
	}
	return words, nil
}

// wordOf returns a word for a row, in which {} stands for some of its values.
func wordOf(pieces []piece, row *sweep.Row, of []sweep.Param, number int64) word {
	w := word{""}
	for _, p := range pieces {
		last := &w[len(w)-1]
		switch {
		case p.kind == isSlot:
			w = append(w, "")
		case p.kind == isNumber:
			*last += strconv.FormatInt(number, 10)
		case p.kind == isValue && p.column >= 0:
			*last += changed(row.Params[p.column].Text, p.change)
		case p.kind == isValue:
			all := make([]string, len(of))
			for i, v := range of {
				all[i] = changed(v.Text, p.change)
			}
			*last += strings.Join(all, " ")
		default:
			*last += p.text
		}
	}
	return w
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
