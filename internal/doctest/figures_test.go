package doctest

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

var (
	heading = regexp.MustCompile(`(?m)^## .*$`)
	command = regexp.MustCompile(`(?m)^    (make bench.*|cd bench .*)$`)
	amount  = regexp.MustCompile(`\d+(?:,\d{3})*(?:\.\d+)?`)
	// A figure of a text has a unit. Other numbers of a text, such as the tasks in a call, say what was measured.
	figure  = regexp.MustCompile(`(\d+(?:,\d{3})*(?:\.\d+)?)(?: to (\d+(?:,\d{3})*(?:\.\d+)?))? (?:(?:µs|ms|s|kB|MB|bytes|commands|objects)\b|%)`)
	notText = regexp.MustCompile("(?m)^    .*$|`[^`]*`|\\[[^]]*\\]\\([^)]*\\)")
)

// The figures of a section are in what its commands have printed, which scripts/figures records. A section without a
// command has no figures, apart from the one whose table redisstate's TestCostOfPlainTasks checks.
func TestFigures(t *testing.T) {
	for _, page := range []string{"docs/performance.md", "docs/shards.md"} {
		for title, body := range sections(read(t, page)) {
			if title == "## What the scripts do for a plain task" {
				continue
			}
			var measured []float64
			commands := command.FindAllStringSubmatch(body, -1)
			for _, c := range commands {
				measured = append(measured, recorded(t, c[1])...)
			}
			if len(commands) == 0 && page != "docs/performance.md" {
				continue
			}
			for _, text := range figuresOf(body) {
				expect.True(t, isMeasured(text, measured), page, title, "has the figure", text, "which no record of its commands has; see scripts/figures")
			}
		}
	}
}

// sections returns the sections of a page by their headings.
func sections(page string) map[string]string {
	all := map[string]string{}
	at := heading.FindAllStringIndex(page, -1)
	for i, span := range at {
		end := len(page)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		all[page[span[0]:span[1]]] = page[span[1]:end]
	}
	return all
}

// recorded returns the numbers that a command has printed.
func recorded(t *testing.T, command string) (all []float64) {
	t.Helper()
	files := expect.Result(filepath.Glob(filepath.Join(root, "bench/figures/*.txt"))).Value(t)
	for _, file := range files {
		text := string(expect.Result(os.ReadFile(file)).Value(t))
		first, rest, _ := strings.Cut(text, "\n")
		if first != "$ "+command {
			continue
		}
		for _, n := range amount.FindAllString(rest, -1) {
			all = append(all, amountOf(n))
		}
		return all
	}
	t.Errorf("bench/figures has no record of %q; run scripts/figures", command)
	return nil
}

func amountOf(text string) float64 {
	n, _ := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
	return n
}

// figuresOf returns the figures of a section: all numbers of its tables except in the first column and in heads, and
// the numbers with units of its text.
func figuresOf(body string) (all []string) {
	head := true
	for line := range strings.Lines(notText.ReplaceAllString(body, "")) {
		if !strings.HasPrefix(line, "|") {
			head = true
			for _, m := range figure.FindAllStringSubmatch(line, -1) {
				all = append(all, m[1])
				if m[2] != "" {
					all = append(all, m[2])
				}
			}
			continue
		}
		if !head && !strings.HasPrefix(line, "| ---") {
			_, cells, _ := strings.Cut(line[1:], "|")
			all = append(all, amount.FindAllString(cells, -1)...)
		}
		head = false
	}
	return all
}

// isMeasured reports whether one of the values, in its own unit or in one that is larger, rounds to the figure.
func isMeasured(text string, values []float64) bool {
	want, digits := amountOf(text), strings.ReplaceAll(text, ",", "")
	unit := 1.0 // of the last digit
	if _, decimals, ok := strings.Cut(digits, "."); ok {
		unit = math.Pow10(-len(decimals))
	} else {
		for ; len(digits) > 2 && strings.HasSuffix(digits, "0"); digits = digits[:len(digits)-1] {
			unit *= 10
		}
	}
	for _, v := range values {
		for _, scale := range []float64{1, 1e3, 1e6, 1e9, 1.0 / 100} {
			if math.Abs(v/scale-want) <= unit/2*(1+1e-9) {
				return true
			}
		}
	}
	return false
}
