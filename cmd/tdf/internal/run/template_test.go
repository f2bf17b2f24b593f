package run

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/sweep"
)

// filled returns the words of a command for a row with columns, each NAME=VALUE.
func filled(named bool, command []string, columns ...string) (string, error) {
	row := &sweep.Row{}
	for _, c := range columns {
		i := strings.LastIndexByte(c, '=')
		row.Params = append(row.Params, sweep.Param{Name: c[:i], Text: c[i+1:]})
	}
	t := &template{command: command, named: named}
	words, err := t.fill(row, 7)
	return strings.Join(plain(words), "|"), err
}

// The placeholders of docs/tdf.md have the values that the page shows for dir/a.wav.
func TestDocumentedPlaceholders(t *testing.T) {
	page := expect.Result(os.ReadFile("../../../../docs/tdf.md")).Value(t)
	rows := regexp.MustCompile("(?m)^\\| `(\\{[^`]*\\})` \\| [^`|]+(?:: |text )`([^`]+)`.*\\|$").FindAllSubmatch(page, -1)
	for _, shown := range rows {
		words := expect.Result(filled(false, []string{string(shown[1]), "{#}"}, "1=dir/a.wav")).Value(t)
		expect.Equal(t, words, string(shown[2])+"|7", string(shown[1]))
	}
	expect.Len(t, rows, 6)
}

// Each name of a column works in braces, whatever its characters, and changes may follow it.
func TestEachNameOfAColumn(t *testing.T) {
	for _, name := range []string{
		"größe", "learning rate", "km/h", "T [K]", "p%", "rate (1/s)", "x:y", "x+y", "α", "a.", "/", ".", "#", "%",
		"1", "=x=", "a,b", "$", "it's", "{x", "x}", "{x}", "{{x}}", "}", "-", "e\u0301",
	} {
		got, err := filled(true, []string{"a{" + name + "}b", "{" + name + "/.}"}, "n=1", name+"=dir/v.txt")
		expect.NoError(t, err, name)
		expect.Equal(t, got, "adir/v.txtb|v", name)
	}
	got := expect.Result(filled(true, []string{"{a}{a.}{a./}"}, "a=1.x", "a.=d/2.x")).Value(t)
	expect.Equal(t, got, "1.xd/2.x2.x")
}

// Braces that are no placeholders stay as they are.
func TestOtherBraces(t *testing.T) {
	for word, want := range map[string]string{
		"${HOME} ${x}":          "${HOME} ${x}",
		"${{x}}$${x}$":          "${{x}}$${x}$",
		"{{x}}":                 "{x}",
		"{{}} {{.}} {{other}}":  "{} {.} {other}",
		"{{{x}}}":               "{{x}}",
		`{"a": {"b": {x}}}`:     `{"a": {"b": 5}}`,
		"{print $1}":            "{print $1}",
		"{print NR}":            "{print NR}",
		"f() { echo {x}; }":     "f() { echo 5; }",
		"{ }{a,b}[0-9]{1,3}{":   "{ }{a,b}[0-9]{1,3}{",
		"{{ x }} {{{{ '{x}' }}": "{{ x }} {{{{ '5' }}",
		"%{x}%{{http_code}}":    "%5%{http_code}",
	} {
		got, err := filled(true, []string{word, "{x}"}, "x=5")
		expect.NoError(t, err, word)
		expect.Equal(t, got, want+"|5", word)
	}
	_, err := filled(true, []string{"{learning rat}", "{n}"}, "n=1", "learning rate=2")
	expect.Fails(t, err, "unknown placeholder {learning rat}: want {n}, {learning rate}; write {{learning rat}} for the text {learning rat}")
}

// What looks like a placeholder, or is one of GNU parallel, is never passed on.
func TestUnknownPlaceholders(t *testing.T) {
	for _, word := range []string{"{grösse}", "{-1}", "{..}", "{print}", "{= s/a/b/ =}", "{1..3}", "x{/../}"} {
		_, err := filled(false, []string{word}, "1=a")
		expect.Fails(t, err, "unknown placeholder {", word)
		_, err = filled(true, []string{word, "{größe}"}, "größe=a")
		expect.Fails(t, err, ": want {größe}; write {{", word)
	}
	_, err := filled(false, []string{"{2}"}, "1=a")
	expect.Fails(t, err, "no value for {2}: an input has 1 value")
	for _, word := range []string{"{}", "data/{}", "{.}", "{#}", "{1}", "{x}", "{%}"} {
		_, err := filled(false, []string{"rm", word})
		expect.Fails(t, err, "and there are no inputs: want --lines, --from, --grid or ::: VALUE…; with --literal, braces are text", word)
	}
	got := expect.Result(filled(false, []string{"echo", "${HOME}", "{a,b}"})).Value(t)
	expect.Equal(t, got, "echo|${HOME}|{a,b}")
}
