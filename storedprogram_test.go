package tdf

import (
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
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
		expect.Equal(t, UnusedBefore(c.now, c.walked), c.want, "now", c.now, "walked", c.walked)
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
		expect.Equal(t, StoredProgram(source), want, source, "names")
	}
	task := taskIn(Open)
	m, err := task.Change(Changes{Source: new("redis:" + sum)})
	expect.True(t, err == nil && m.NamedProgram() == sum, "the change names", m.NamedProgram(), err)
	m, err = task.Change(Changes{Input: new("redis:" + sum)})
	expect.True(t, err == nil && m.NamedProgram() == "", "a change of the input names", m.NamedProgram(), err)
}
