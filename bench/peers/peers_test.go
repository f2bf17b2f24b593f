package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// TestMain makes the test program act as a child process if a measurement has started it.
func TestMain(m *testing.M) {
	if isRole() {
		exit(runRole(context.Background(), os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}

// All sides of a bar of each kind are measured, and each bar has its lines.
func TestQuick(t *testing.T) {
	bars := slices.DeleteFunc(allBars(), func(b *bar) bool {
		return slices.Contains([]string{"open-bulk", "open-shared", "life-cycle"}, b.name)
	})
	var names []string
	for _, b := range bars {
		names = append(names, b.name)
	}
	var out bytes.Buffer
	expect.NoError(t, compare(t.Context(), []string{"-quick", "-bars", strings.Join(names, ",")}, &out), &out)
	for _, b := range bars {
		verdicts := regexp.MustCompile(`(?m)^bar `+b.name+` .* want [<>]= .*: (met|short)$`).FindAllString(out.String(), -1)
		expect.Len(t, verdicts, len(b.wants), b.name)
	}
}

// The line of a bar compares the figures of each round. If a side fails, its bar is not measured.
func TestBar(t *testing.T) {
	is := func(name string, values ...float64) side {
		return side{name: name, measure: func(*trial) (f figure) {
			if len(values) == 0 {
				check(errors.New("no luck"))
			}
			f.value, values = values[0], values[1:]
			return f
		}}
	}
	whole := newBar("whole", "x/s", []side{is("A", 8, 6, 12), is("B", 2, 3, 4)}, want{">=", 3, "B"}, want{"<=", 7, ""})
	expect.NoError(t, whole.measure(t.Context(), 3, size{}))
	for i, line := range []string{"bar whole 3.00 (2.00-4.00) × B want >= 3: met", "bar whole 8.00 (6.00-12.0) x/s want <= 7: short"} {
		expect.Equal(t, whole.line(whole.wants[i]), line)
	}
	broken := newBar("broken", "x/s", []side{is("A", 8, 6), is("B", 2)})
	expect.Fails(t, broken.measure(t.Context(), 2, size{}), "B: no luck")
}
