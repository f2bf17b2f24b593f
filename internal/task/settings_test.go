package task

import (
	"fmt"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

func TestChangeSettings(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"max_tasks", "1", "1"},
		{"max_tasks", "1099511627775", "1099511627775"},
		{"max_tasks", "inf", "inf"},
		{"high_water", "1", "1"},
		{"high_water", "0.25", "0.25"},
		{"high_water", "1e-3", "0.001"},
		{"original_workers", "yes", "yes"},
		{"original_workers", "no", "no"},
		{"rounds_open", "no", "no"},
		{"rounds_open", "yes", "yes"},
	} {
		s := DefaultSettings()
		expect.NoError(t, s.Change(c.name, c.value), c.name, c.value)
		expect.Equal(t, s.Value(c.name), c.want, c.name, c.value)
	}
	for name, values := range map[string][]string{
		"max_tasks":        {"", "0", "-1", "1.5", "1e3", "1099511627776", "99999999999999999999", "Inf", "x", " 1"},
		"high_water":       {"", "0", "-0.5", "1.1", "NaN", "inf", "-inf", "0x1p-1", "80%", "0,8"},
		"original_workers": {"", "1", "true", "Yes"},
		"rounds_open":      {"", "0", "No"},
		"other":            {"1"},
	} {
		for _, value := range values {
			s := DefaultSettings()
			expect.Fails(t, s.Change(name, value), "", name, "=", value)
			expect.Equal(t, s, DefaultSettings(), name, "=", value)
		}
	}
}

// New tasks wait above high_water. Claims wait above 0.95, or above high_water if that is higher.
func TestWaitsForMemory(t *testing.T) {
	for _, c := range []struct {
		highWater    float64
		memory       Memory
		opens, claim bool
	}{
		{0.8, Memory{}, false, false},
		{0.8, Memory{Used: 1e12}, false, false},
		{0.8, Memory{Used: 800, Max: 1000}, false, false},
		{0.8, Memory{Used: 801, Max: 1000}, true, false},
		{0.8, Memory{Used: 950, Max: 1000}, true, false},
		{0.8, Memory{Used: 951, Max: 1000}, true, true},
		{0.98, Memory{Used: 960, Max: 1000}, false, false},
		{0.98, Memory{Used: 981, Max: 1000}, true, true},
		{0.001, Memory{Used: 2, Max: 1000}, true, false},
		{1, Memory{Used: 1000, Max: 1000}, false, false},
		{1, Memory{Used: 1001, Max: 1000}, false, true},
	} {
		s := DefaultSettings()
		s.HighWater = c.highWater
		expect.Equal(t, fmt.Sprint(s.OpensWait(c.memory), s.ClaimsWait(c.memory)), fmt.Sprint(c.opens, c.claim), "high_water", c.highWater, c.memory)
	}
}

func TestNamespacesThatCollide(t *testing.T) {
	for namespace, want := range map[string]string{
		"P": "", "group": "", "a:b": "", "P:groups": "", "{P}:x": "",
		"P:group": "group", "P:x:task:y": "task", ":wake": "wake", "P:worker_id": "worker_id",
	} {
		expect.Equal(t, CollidesWithKeys(namespace), want, namespace)
	}
}
