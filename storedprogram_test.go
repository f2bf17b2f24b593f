package tdf

import (
	"strings"
	"testing"
)

func TestUnusedBefore(t *testing.T) {
	const week = 604_800
	for _, c := range []struct{ now, walked, want Time }{
		{10 * week, 9.5 * week, 9 * week},
		{10 * week, 8 * week, 8 * week},
		{10 * week, 11 * week, 9 * week}, // the clock was set back since the walk
		{10 * week, 0, 0},
		{10 * week, -1, 0},
		{5, 5, 0},
	} {
		if got := UnusedBefore(c.now, c.walked); got != c.want {
			t.Errorf("now %v, walked %v: %v, want %v", c.now, c.walked, got, c.want)
		}
	}
}

func TestStoredProgram(t *testing.T) {
	sum := strings.Repeat("ab", 32)
	for source, want := range map[string]string{
		"redis:" + sum:                  sum,
		"redis:" + sum + "x":            "",
		"redis:":                        "",
		"redis":                         "",
		"":                              "",
		"rediss:" + sum:                 "",
		"https://example.org/run.sh":    "",
		"rsync:redis:/" + sum + ".zip":  "",
		"redis:" + strings.ToUpper(sum): sum,
	} {
		if got := StoredProgram(source); got != want {
			t.Errorf("%q names %q, want %q", source, got, want)
		}
	}
	task := taskIn(Open)
	m, err := task.Change(Changes{Source: new("redis:" + sum)})
	if err != nil || m.NamedProgram() != sum {
		t.Errorf("the change names %q, %v", m.NamedProgram(), err)
	}
	if m, err := task.Change(Changes{Input: new("redis:" + sum)}); err != nil || m.NamedProgram() != "" {
		t.Errorf("a change of the input names %q, %v", m.NamedProgram(), err)
	}
}
