package sweep

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tdf-framework/tdf/internal/expect"
)

func TestCSV(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"a,b\n1,x\n2,y\n", []string{"a=1 b=x", "a=2 b=y"}},
		{"\uFEFFa,b\r\n1,x\r\n2,y", []string{"a=1 b=x", "a=2 b=y"}},
		{" a , b\n 1 , x\n", []string{"a= 1  b= x"}},
		{"a\n\n1\n\n\n\"\"\n", []string{"a=1", "a="}},
		{"a,\"b, c\"\n\"x\ny\",\"say \"\"hi\"\"\"\n", []string{"a=x\ny b, c=say \"hi\""}},
		{"größe\nπ\n", []string{"größe=π"}},
		{"a,b\r\n\"x\r\ny\r\n\",\"\r\"\"\r\n\"\r\n\"\r\",\r\n", []string{"a=x\r\ny\r\n b=\r\"\r\n", "a=\r b="}},
		{"when,empty,none\n2024-01-31,,\"\"\n", []string{"when=2024-01-31 empty= none="}},
	} {
		got, err := collect(CSV(iotest.OneByteReader(strings.NewReader(c.text))))
		diff := cmp.Diff(c.want, got)
		expect.NoError(t, err, c.text, diff)
		expect.Equal(t, diff, "", c.text)
	}
}

// The time for a row grows with its length, not with the square of its columns: with the square, this test takes a minute.
func TestMostColumns(t *testing.T) {
	const columns = 100_000 // about as many as fit into a row
	var header, values []string
	for i := range columns {
		header, values = append(header, strconv.FormatInt(int64(i), 36)), append(values, "0")
	}
	for name, rows := range map[string]iter.Seq2[Row, error]{
		"CSV":   CSV(strings.NewReader(strings.Join(header, ",") + "\n" + strings.Join(values, ","))),
		"JSONL": JSONL(strings.NewReader(`{"` + strings.Join(header, `":0,"`) + `":0}`)),
	} {
		for row, err := range rows {
			expect.NoError(t, err, name)
			expect.Len(t, row.Params, columns, name)
		}
	}
}

func TestCSVNamesTheLine(t *testing.T) {
	long := strings.Repeat("x", 2*maxRecord)
	for text, want := range map[string]string{
		"":                           "line 1: the input is empty",
		"\uFEFF":                     "line 1: the input is empty",
		"a,b\n":                      "line 1: no rows",
		"a,b\n1,2\n3\n":              "line 3: the row has 1 value, but the header has 2",
		"a,b\n1,2,3\n":               "line 2: the row has 3 values, but the header has 2",
		"a,\"b\n\n\"\n1,2\n\n1\n":    "line 6: the row has 1 value, but the header has 2",
		"a;b\n1;2\n":                 `line 1: the header is the single name "a;b"; separate values with commas`,
		"a;b\n1,5;2\n":               `line 1: the header is the single name "a;b"`,
		"a\tb\n1\t2\n":               `line 1: the header is the single name "a\tb"`,
		"a,\n1,2\n":                  "line 1: column 2 of the header: a parameter has no name",
		"a,b,a\n1,2,3\n":             `line 1: column 3 of the header: two parameters have the name "a"`,
		"a,a \n1,2\n":                `line 1: column 2 of the header: two parameters have the name "a"`,
		"a\n1\nx\"y\n":               `line 3: column 2: bare "`,
		"a\n1\n\"x\n\n":              "line 3: column",
		"a\nfine\n\xff\n":            "line 3: not UTF-8 text",
		"a\n1\n\"" + long + "\"\n":   "line 3: the row has more than",
		"a\n\"1\n2\"\n\"" + long:     "line 4: the row has more than",
		long + long:                  "line 1: the row has more than",
		"a\n1\n" + long + ",2\n":     "line 3: the row has more than",
		"a\x07b\n1\n":                "line 1: column 1 of the header: the name",
		"a,b\n1,2\n,\n\"\",\"\"\"\n": "line 4: column",
	} {
		_, err := collect(CSV(strings.NewReader(text)))
		checkError(t, fmt.Sprintf("%.40q", text), err, want)
		expect.True(t, errors.As(err, new(*RowError)), text, err, "is not a *RowError")
	}
}

func TestReadingFails(t *testing.T) {
	broken := errors.New("the disk is broken")
	for name, rows := range map[string]func(io.Reader) ([]string, error){
		"CSV":   func(r io.Reader) ([]string, error) { return collect(CSV(r)) },
		"JSONL": func(r io.Reader) ([]string, error) { return collect(JSONL(r)) },
	} {
		for _, text := range []string{"", "a"} {
			expect.Result(rows(io.MultiReader(strings.NewReader(text), iotest.ErrReader(broken)))).FailsWith(t, broken, name, text)
		}
	}
	for text, rows := range map[string]func(io.Reader) iter.Seq2[Row, error]{"a\n1\n": CSV, "{\"a\":1}\n{\"a\"": JSONL} {
		expect.Result(collect(rows(io.MultiReader(strings.NewReader(text), iotest.ErrReader(broken))))).FailsWith(t, broken, text)
	}
}

// CSV returns the values that a csv.Writer wrote.
func TestCSVProperty(t *testing.T) {
	field := rapid.OneOf(anyText(), rapid.StringOf(rapid.SampledFrom([]rune("\r\n\"a,"))))
	rapid.Check(t, func(t *rapid.T) {
		var records [][]string
		width := rapid.IntRange(2, 4).Draw(t, "width")
		for range rapid.IntRange(1, 5).Draw(t, "rows") {
			records = append(records, rapid.SliceOfN(field, width, width).Draw(t, "row"))
		}
		var text bytes.Buffer
		w := csv.NewWriter(&text)
		if err := w.Write([]string{"a", "b", "c", "d"}[:width]); err != nil {
			t.Fatal(err)
		}
		if err := w.WriteAll(records); err != nil {
			t.Fatal(err)
		}
		n := 0
		for row, err := range CSV(&text) {
			if err != nil {
				t.Fatal(err)
			}
			for i, p := range row.Params {
				if p.Text != records[n][i] {
					t.Fatalf("row %d: got %q, want %q", n, p.Text, records[n][i])
				}
			}
			n++
		}
		if n != len(records) {
			t.Fatalf("%d rows, want %d", n, len(records))
		}
	})
}

func TestJSONL(t *testing.T) {
	text := "\uFEFF{\"b\": \"x y\", \"a\": 1.50}\r\n\n  {\"a\" : 1e400,\"c\":true , \"d\":null}\n" +
		`{"e": {"x": [1, 2, "<&>"]}, "f": [ ], "g": "\u00e9\n\ud83d\ude00\\ud800", "h": -0, "i": 12345678901234567890}`
	want := []string{
		`{"b":"x y","a":1.50}`,
		`{"a":1e400,"c":true,"d":null}`,
		`{"e":{"x":[1,2,"<&>"]},"f":[],"g":"é\n😀\\ud800","h":-0,"i":12345678901234567890}`,
	}
	wantTexts := []string{
		"b=x y a=1.50", "a=1e400 c=true d=", `e={"x":[1,2,"<&>"]} f=[] g=é` + "\n😀\\ud800 h=-0 i=12345678901234567890",
	}
	texts, err := collect(JSONL(iotest.OneByteReader(strings.NewReader(text))))
	diff := cmp.Diff(wantTexts, texts)
	expect.NoError(t, err, diff)
	expect.Equal(t, diff, "")
	var got []string
	for row, err := range JSONL(strings.NewReader(text)) {
		expect.NoError(t, err)
		got = append(got, row.JSON())
	}
	expect.Equal(t, cmp.Diff(want, got), "")
}

func TestJSONLNamesTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "line 1: no rows",
		"\n\n":                   "line 2: no rows",
		"\n[1]\n":                "line 2: not a JSON object",
		"{\"a\":1}\n7\n":         "line 2: not a JSON object",
		"{\"a\":1}\n{\"a\":1\n":  "line 2: invalid JSON: the text ends too early",
		"{\"a\":1} {\"a\":1}\n":  "line 1: text follows the JSON object",
		"{\"a\":}\n":             `line 1: the value of "a" is invalid JSON`,
		"{\"a\":":                `line 1: the value of "a" is invalid JSON: the text ends too early`,
		"{\"a\":1,\"a\":2}\n":    `line 1: two parameters have the name "a"`,
		"{\"\":1}\n":             "line 1: a parameter has no name",
		"{\"a\\u0007\":1}\n":     "line 1: the name",
		"{1:2}\n":                "line 1: invalid JSON",
		"{\"a\":1]\n":            "line 1: invalid JSON",
		"{\"a\":\"\xff\"}\n":     "line 1: not UTF-8 text",
		"{\"a\":01}\n":           "line 1: ",
		`{"a":"\ud800"}`:         `line 1: \ud800 is half of a character`,
		`{"a":"\uDBFFx"}`:        `line 1: \uDBFF is half of a character`,
		`{"a":["\\\udc00"]}`:     `line 1: \udc00 is half of a character`,
		`{"\ud83d\u0041":1}`:     `line 1: \ud83d is half of a character`,
		strings.Repeat("x", 2e6): "line 1: the line has more than",
		"{\"a\":" + strings.Repeat("[", 20_000) + "\n": "line 1: ",
	} {
		_, err := collect(JSONL(strings.NewReader(text)))
		checkError(t, fmt.Sprintf("%.40q", text), err, want)
	}
}

// PointOf finds a row's Point from the row's JSON.
func TestPointOf(t *testing.T) {
	text := anyText().Filter(func(s string) bool { return s == strings.ToValidUTF8(s, "") })
	rapid.Check(t, func(t *rapid.T) {
		row := rowOf("a", text.Draw(t, "a"), "b", text.Draw(t, "b"))
		got, ok := PointOf(row.JSON())
		if !ok || got != row.Point() {
			t.Fatalf("PointOf(%s): ok %v, and not the row's point", row.JSON(), ok)
		}
		again, err := parseObject([]byte(row.JSON()))
		if err != nil || again[0].Text != row.Params[0].Text || again[1].Text != row.Params[1].Text {
			t.Fatalf("parseObject(%s): %v, %+v", row.JSON(), err, again)
		}
		slices.Reverse(row.Params)
		if row.Point() != got {
			t.Fatal("the order of the parameters changes the point")
		}
		row.Params[0].Text += "x"
		if row.Point() == got {
			t.Fatal("another value does not change the point")
		}
	})
	for _, same := range [][2]string{
		{`{"a":1,"b":"x"}`, `{"b":"x","a":"1"}`}, {`{"a":null}`, `{"a":""}`}, {`{"a":[1, 2]}`, `{"a":[1,2]}`},
	} {
		a, ok := PointOf(same[0])
		if b, ok2 := PointOf(same[1]); a != b || !ok || !ok2 {
			t.Errorf("%s and %s have different points", same[0], same[1])
		}
	}
	for _, other := range [][2]string{{`{"a":1.0}`, `{"a":1}`}, {`{"a":"b","c":""}`, `{"a":"","bc":""}`}} {
		a, _ := PointOf(other[0])
		b, _ := PointOf(other[1])
		expect.True(t, a != b, other[0], "and", other[1], "have the same point")
	}
	for _, none := range []string{"", "x", "7", "[1]", `{"a":1`, "{\"a\":\"\xff\"}"} {
		if _, ok := PointOf(none); ok {
			t.Errorf("PointOf(%q) returns a point", none)
		}
	}
}

func TestRowJSON(t *testing.T) {
	row := rowOf("n", "1.50", "zero", "007", "long", "1234567890123456", "neg", "-0.5", "s", `a"<b>`, "day", "2024-01-31", "empty", "")
	want := `{"n":1.50,"zero":"007","long":"1234567890123456","neg":-0.5,"s":"a\"<b>","day":"2024-01-31","empty":""}`
	expect.Equal(t, row.JSON(), want)
}

// A value with an exponent becomes a number in JSON if a float64 can represent it. The text of the value in the input
// never changes.
func TestNumbersWithExponents(t *testing.T) {
	for _, number := range []string{
		"1e-3", "1E5", "1e5", "2.5e-05", "-1e5", "1e+06", "10e3", "100e-6", "6.02214076e23", "1e20", "5E18", "1e308", "0e5", "0.0e-999",
		"123456789012345", "-12345678901234.5", "1.23456789012345e-300", "1e0",
	} {
		row := rowOf("a", number)
		expect.Equal(t, row.JSON(), `{"a":`+number+`}`)
		expect.Result(row.Words()).Is(t, number, "the input of")
	}
	for _, text := range []string{
		"1e400", "1e-310", "1e-400", "1.2345678901234567e5", "01e5", "1e05", "3e00", "1234e56", "12e20", "1e12345", "0x1e5", "1e", "e5", "+1e5",
		"1.e5", ".5e3", "1e5 ", "1e5.0", "inf", "NaN", "1e999999999999999999999", strings.Repeat("0", 1000) + "e5",
	} {
		row := rowOf("a", text)
		expect.Equal(t, row.JSON(), `{"a":"`+text+`"}`)
	}
}

// Every value of a range is a number in JSON.
func TestRangesAreNumbers(t *testing.T) {
	for _, text := range []string{
		"1e-3..5e-3/1e-3", "9e-20..1.1e-19/1e-20", "-1e20..1e20/1e20", "9e14..1.1e15/1e14", "1..1.00000000000005/0.00000000000001",
		"0..5e-15/1e-15", "-1e-20..1e-20/5e-21", "-99999999999999.5..-99999999999997.5/0.5", "1e300..5e300/1e300",
	} {
		g, err := ParseGrid("a=" + text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		for row := range g.Rows() {
			expect.True(t, !strings.Contains(row.JSON(), `:"`), text, row.JSON(), "is text")
		}
	}
}
