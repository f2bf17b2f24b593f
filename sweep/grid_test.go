package sweep

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tdf-framework/tdf/internal/expect"
)

func TestGrid(t *testing.T) {
	for text, want := range map[string]string{
		"a=1..3":                        "a=1;a=2;a=3",
		"a=3..1":                        "a=3;a=2;a=1",
		"a=1..10/4":                     "a=1;a=5;a=9",
		"a=10..1/4":                     "a=10;a=6;a=2",
		"a=-1..1":                       "a=-1;a=0;a=1",
		"a=5..5":                        "a=5",
		"a=1..2 b=x,y":                  "a=1 b=x;a=1 b=y;a=2 b=x;a=2 b=y",
		"  a=x\n\tb=y ":                 "a=x b=y",
		"c=0.1..0.5/0.1":                "c=0.1;c=0.2;c=0.3;c=0.4;c=0.5",
		"c=0..1/0.25":                   "c=0;c=0.25;c=0.5;c=0.75;c=1",
		"c=0.5..-0.5/0.25":              "c=0.5;c=0.25;c=0;c=-0.25;c=-0.5",
		"c=-0.05..0.05/0.05":            "c=-0.05;c=0;c=0.05",
		"c=1..1.3/.1":                   "",
		"c=100..300/100":                "c=100;c=200;c=300",
		"a=1..3,7,x,20..10/5":           "a=1;a=2;a=3;a=7;a=x;a=20;a=15;a=10",
		`a='x, y',"it's",b\ c`:          "a=x, y;a=it's;a=b c",
		`a='1..3',''`:                   "a=1..3;a=",
		`a="say \"hi\" \n"`:             `a=say "hi" \n`,
		"a=../x,v1..2,1.2.3,a=b":        "a=../x;a=v1..2;a=1.2.3;a=a=b",
		"a=0.1,0.10,1e5":                "a=0.1;a=0.10;a=1e5",
		"c=1e-3..5e-3/1e-3":             "c=0.001;c=0.002;c=0.003;c=0.004;c=0.005",
		"c=1E3..3e3/1e+3":               "c=1000;c=2000;c=3000",
		"c=0..3e-4/1.5e-4":              "c=0;c=0.00015;c=0.0003",
		"c=1e-2..-1e-2/1e-2":            "c=0.01;c=0;c=-0.01",
		"c=9e-20..1.1e-19/1e-20":        "c=9e-20;c=1e-19;c=1.1e-19",
		"c=-1e20..1e20/1e20":            "c=-1e20;c=0;c=1e20",
		"c=0e9..2/1":                    "c=0;c=1;c=2",
		"c=1e-3,2E5,x1-10,1-10-2":       "c=1e-3;c=2E5;c=x1-10;c=1-10-2",
		"d=2024-01,2024-10-15,10:30:00": "d=2024-01;d=2024-10-15;d=10:30:00",
		`a="1-10",'1:10',1\-10`:         "a=1-10;a=1:10;a=1-10",
		"a=0..99999999999/99999999999":  "a=0;a=99999999999",
	} {
		g, err := ParseGrid(text)
		if want == "" {
			checkError(t, text, err, "is not a range")
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got, _ := collect(g.Rows())
		diff := cmp.Diff(strings.Split(want, ";"), got)
		expect.Equal(t, diff, "")
		expect.Equal(t, g.Len(), int64(len(got)), diff)
	}
}

func TestGridRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "is empty",
		"  ":                        "is empty",
		"a":                         "write NAME=VALUES",
		"a =1":                      "write NAME=VALUES",
		"=1":                        "has no name",
		"a=":                        "a: a value is empty",
		"a=1,":                      "a: a value is empty",
		"a=,1":                      "a: a value is empty",
		"a=1 b= c=2":                "b: a value is empty",
		"a=\xff":                    "not UTF-8 text",
		"a=1 a=2":                   `have the name "a"`,
		"a='x":                      "a: a quote is not closed",
		`a=x\`:                      "a: a backslash at the end",
		"a=1..":                     "1.. is not a range",
		"a=1..x":                    "1..x is not a range",
		"a=1...3":                   "is not a range",
		"a=01..10":                  "is not a range",
		"a=1..10/-1":                "is not a range",
		"a=1..10/0":                 "has a step of 0",
		"a=1..10/0.0":               "has a step of 0",
		"a=0.1..0.5":                "needs a step",
		"a=1..9999999999999999":     "is not a range",
		"a=1e-3..x":                 "1e-3..x is not a range",
		"a=1e-3..5e-3/":             "is not a range",
		"a=1e-3..5e-3/0e-3":         "has a step of 0",
		"a=1e-3..5e-3":              "1e-3..5e-3 needs a step, such as 1e-3..5e-3/1e-3",
		"a=1e3..1e5":                "1e3..1e5 needs a step, such as 1e3..1e5/1e3",
		"a=1..1e20/1":               "is not a range",
		"a=1e308..1e309/1e308":      "is not a range",
		"a=1e-400..2e-400/1e-400":   "is not a range",
		"a=1..1e99999999999999/1":   "is not a range",
		"a=0x10..0x20":              "0x10..0x20 is not a range",
		"a=1-10":                    "a=1-10: did you mean a=1..10? Quote it if it is text: a='1-10'",
		"a=x,1:10":                  "did you mean a=1..10?",
		"a=1e-3-5e-3/1e-3":          "did you mean a=1e-3..5e-3/1e-3?",
		"a=-5--1":                   "did you mean a=-5..-1?",
		"a=1:10:2":                  "did you mean a=FIRST..LAST/STEP?",
		"a=1…10":                    "did you mean a=1..10?",
		"a=0..1/0.000000000000001":  "is not a range",
		"a=1..999999999999999":      "a has more than 10000000 values",
		"a=1..1000 b=1..10001":      "more than 10000000 points",
		"a=1..9999999 b=1..9999999": "more than 10000000 points",
	} {
		_, err := ParseGrid(text)
		checkError(t, text, err, want)
	}
}

// Large grids are not slow. The method Len does not visit the points, and the method row computes one row without the
// rows before it.
func TestLargeGrid(t *testing.T) {
	g := expect.Result(ParseGrid("a=1..1000 b=1..10000")).Value(t)
	expect.MustEqual(t, g.Len(), 1e7)
	row := g.row(1e7 - 2)
	expect.Equal(t, row.JSON(), `{"a":1000,"b":9999}`)
	checkError(t, "a row", row.Wrong(errEmpty), "point 9999999: ")
}

// The values of a range of decimals are the values of a range of whole numbers, divided by a power of ten.
func TestGridDecimals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		decimals := rapid.IntRange(0, 4).Draw(t, "decimals")
		first := rapid.Int64Range(-1e6, 1e6).Draw(t, "first")
		step := rapid.Int64Range(1, 1e5).Draw(t, "step")
		count := rapid.Int64Range(1, 50).Draw(t, "count")
		write := func(n int64) string { return formatPlain(n, -decimals) }
		g, err := ParseGrid(fmt.Sprintf("a=%s..%s/%s", write(first), write(first+(count-1)*step), write(step)))
		if err != nil {
			t.Fatal(err)
		}
		got, _ := collect(g.Rows())
		var want []string
		for i := range count {
			want = append(want, "a="+write(first+i*step))
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

func FuzzGrid(f *testing.F) {
	for _, seed := range []string{"a=1..10 b=x,y c=0.1..0.5/0.1", `a='x, y',"it's" b=\ `, "a=10..1/3", "a=-0.5..0.5/0.25,x", "a=1..", "=,"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		g, err := ParseGrid(text)
		if err != nil {
			return
		}
		n := int64(0)
		for row := range g.Rows() {
			if n++; n > 1000 {
				break
			}
			expect.MustEqual(t, len(row.Params), len(g.axes), "row", n)
			expect.MustEqual(t, row.Line, n)
		}
		if n <= 1000 {
			expect.MustEqual(t, n, g.Len())
		}
		last := g.row(g.Len() - 1)
		_, ok := PointOf(last.JSON())
		if !ok {
			expect.MustTrue(t, strings.ToValidUTF8(text, "") != text, "the last point is", last.JSON())
		}
	})
}
