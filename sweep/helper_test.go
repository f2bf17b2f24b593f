package sweep

import (
	"iter"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tdf-framework/tdf/internal/expect"
)

// collect returns each row as "name=text …", and the error that ended the sequence.
func collect(rows iter.Seq2[Row, error]) ([]string, error) {
	var all []string
	for row, err := range rows {
		if err != nil {
			return all, err
		}
		words := []string{}
		for _, p := range row.Params {
			words = append(words, p.Name+"="+p.Text)
		}
		all = append(all, strings.Join(words, " "))
	}
	return all, nil
}

func rowOf(pairs ...string) Row {
	row := Row{Line: 1}
	for i := 0; i < len(pairs); i += 2 {
		row.Params = append(row.Params, Param{Name: pairs[i], Text: pairs[i+1]})
	}
	return row
}

// anyText generates texts without NUL bytes. Many of them contain characters that are special to a parser.
func anyText() *rapid.Generator[string] {
	awkward := rapid.StringOf(rapid.SampledFrom([]rune("ab1 \t\n\r'\"\\$`{}|,=#~*é\u2028.-")))
	return rapid.OneOf(awkward, rapid.String().Filter(func(s string) bool { return !strings.Contains(s, "\x00") }))
}

func checkError(t *testing.T, what string, err error, want ...string) {
	t.Helper()
	for _, part := range want {
		expect.Fails(t, err, part, what)
	}
}
