package main

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
)

// A reader collects the sentences of files.
type reader struct {
	found      map[string][]sentence // maps a kind to its sentences
	seen       map[string]bool
	file, kind string
	text       string      // the current paragraph
	lines      map[int]int // maps the position of a line's beginning in text to the line's number
}

var (
	item        = regexp.MustCompile(`^\s*(?:[-*] |\d+\. )`)
	code        = regexp.MustCompile(`^(?:\t|    +|go:)\S.*`) // matches code in a comment, or a directive
	link        = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	comment     = regexp.MustCompile(`(?:^|\s)(?:#|--)\s(.*)$`)
	sentenceEnd = regexp.MustCompile("[.!?][\"')`]*(\\s)[\"'(`$]*[\\p{Lu}\\d%]")
	word        = regexp.MustCompile("(?:^|[\\s\"'(`])\\pL")
)

// add adds a line to the paragraph. An empty line ends the paragraph, and a list item begins one.
func (r *reader) add(number int, s string) {
	if s = strings.TrimSpace(s); s == "" || item.MatchString(s) {
		r.end()
	}
	if s != "" {
		r.lines[len(r.text)] = number
		r.text += strings.TrimSpace(item.ReplaceAllString(s, "")) + " "
	}
}

// end ends the paragraph, and adds its sentences to found. It ignores sentences of fewer than three words.
func (r *reader) end() {
	from, line := 0, 0
	for _, end := range append(sentenceEnd.FindAllStringSubmatchIndex(r.text, -1), []int{0, 0, len(r.text), 0}) {
		s := strings.Join(strings.Fields(r.text[from:end[2]]), " ")
		for at := range from + 1 {
			line = cmp.Or(r.lines[at], line)
		}
		if len(word.FindAllString(s, 3)) == 3 && !r.seen[s] {
			r.seen[s] = true
			r.found[r.kind] = append(r.found[r.kind], sentence{r.file, s, line})
		}
		from = end[3]
	}
	r.text, r.lines = "", map[int]int{}
}

// readPage reads a page in Markdown. It ignores headings and code. Each cell of a table is a paragraph.
func (r *reader) readPage(content string) {
	r.kind = pages
	fenced := false
	for i, l := range strings.Split(content, "\n") {
		fence := strings.HasPrefix(strings.TrimSpace(l), "```")
		fenced = fenced != fence
		l = strings.ReplaceAll(link.ReplaceAllString(l, "$1"), "**", "")
		switch {
		case fenced, fence, strings.HasPrefix(l, "#"), code.MatchString(l) && r.text == "" && !item.MatchString(l):
			r.end()
		case strings.HasPrefix(l, "|"):
			for cell := range strings.SplitSeq(l, "|") {
				r.add(i+1, cell)
				r.end()
			}
		default:
			r.add(i+1, l)
		}
	}
	r.end()
}

func (r *reader) readComments(content string) {
	r.kind = comments
	for i, l := range strings.Split(content, "\n") {
		found := comment.FindStringSubmatchIndex(l)
		if found == nil || strings.TrimSpace(l[:found[0]]) != "" { // there is no comment, or the comment follows code on the same line
			r.end()
		}
		if found != nil {
			r.add(i+1, l[found[2]:])
		}
	}
	r.end()
}

// readGo reads the comments of a Go file. If the file is not a test, readGo also reads the strings.
func (r *reader) readGo(content string) error {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, r.file, content, parser.ParseComments)
	if err != nil {
		return err
	}
	line := func(p token.Pos) int { return set.Position(p).Line }
	declared := map[int]bool{line(file.Package): true}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n.(type) {
		case *ast.BlockStmt: // comments in a function are not doc comments
			return false
		case ast.Decl, ast.Spec, *ast.Field:
			declared[line(n.Pos())] = true
		}
		return true
	})
	for _, group := range file.Comments {
		r.kind = comments
		if declared[line(group.End())+1] && !declared[line(group.Pos())] {
			r.kind = docs
		}
		for _, c := range group.List {
			l := strings.TrimPrefix(strings.TrimPrefix(c.Text, "//"), " ")
			r.add(line(c.Pos()), code.ReplaceAllString(l, ""))
		}
		r.end()
	}
	if !strings.HasSuffix(r.file, "_test.go") {
		r.readStrings(file, line)
	}
	return nil
}

// readStrings reads the strings of a Go file. Two kinds of strings are help texts: the last argument of a call that
// declares a flag, and the fields Short and Long of cobra.Command. Other strings are messages. The tags of struct
// fields are no sentences.
func (r *reader) readStrings(file *ast.File, line func(token.Pos) int) {
	helps, tags := map[ast.Node]bool{}, map[ast.Node]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			key, _ := n.Key.(*ast.Ident)
			helps[n.Value] = key != nil && (key.Name == "Short" || key.Name == "Long")
			return key == nil || key.Name != "Use" && key.Name != "Example" // the fields Use and Example hold command lines, not sentences
		case *ast.CallExpr:
			called, _ := n.Fun.(*ast.SelectorExpr)
			if called != nil && strings.HasSuffix(strings.TrimSuffix(called.Sel.Name, "P"), "Var") && len(n.Args) > 2 {
				helps[n.Args[len(n.Args)-1]] = true
			}
		case *ast.BinaryExpr:
			helps[n.X], helps[n.Y] = helps[n], helps[n]
		case *ast.Field:
			tags[n.Tag] = true
		}
		if n == nil || tags[n] {
			return false
		}
		e, _ := n.(ast.Expr)
		s, whole := literal(e)
		if r.kind = messages; helps[n] || strings.HasPrefix(s, "usage: ") {
			r.kind = help
		}
		for l := range strings.SplitSeq(s, "\n") {
			if whole {
				r.add(line(n.Pos()), l)
			}
		}
		r.end()
		return !whole
	})
}

// literal returns the text of a string constant, or of string constants joined by +. For any other expression, it
// returns false.
func literal(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, err := strconv.Unquote(e.Value)
		return s, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		a, first := literal(e.X)
		b, second := literal(e.Y)
		return a + b, first && second && e.Op == token.ADD
	}
	return "", false
}
