package admin

import (
	"fmt"
	"math"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

func TestChance(t *testing.T) {
	for _, c := range []struct {
		worker, others score
		want           float64
	}{
		{score{0, 5}, score{0, 5}, 1},
		{score{1, 1}, score{0, 1}, 0.5},
		{score{5, 5}, score{0, 5}, 1.0 / 252},
		{score{3, 4}, score{1, 4}, 17.0 / 70}, // the example of the lady tasting tea, from Fisher's book
		{score{4, 4}, score{0, 4}, 1.0 / 70},
		{score{2, 10}, score{15, 20}, 1 - (286+17*715)/30045015.0},
		{score{0, 0}, score{3, 9}, 1},
	} {
		got := c.worker.chance(c.others)
		expect.True(t, math.Abs(got-c.want) <= 1e-6, c.worker, "beside", c.others, got, "want", c.want)
	}
}

func TestSuspects(t *testing.T) {
	for name, c := range map[string]struct {
		workers map[string]score
		want    string
	}{
		"alone":           {map[string]score{"a": {50, 50}}, "[]"},
		"all fail":        {map[string]score{"a": {50, 50}, "b": {50, 50}}, "[]"},
		"one is bad":      {map[string]score{"a": {10, 10}, "b": {0, 10}, "c": {1, 12}}, "[a]"},
		"too few to tell": {map[string]score{"a": {3, 3}, "b": {0, 3}}, "[]"},
		"two failures":    {map[string]score{"a": {2, 2}, "b": {0, 1000}}, "[]"},
		"not twice":       {map[string]score{"a": {600, 1000}, "b": {400, 1000}}, "[]"},
		"small part":      {map[string]score{"a": {30, 1000}, "b": {2, 1000}, "c": {0, 1000}}, "[a]"},
		"two are bad":     {map[string]score{"a": {40, 40}, "b": {30, 30}, "c": {1, 300}}, "[a b]"},
	} {
		var names []string
		for _, s := range (scoreboard{"p": c.workers}).suspects() {
			names = append(names, s.Worker)
		}
		expect.Equal(t, fmt.Sprint(names), c.want, name)
	}
	many := map[string]score{}
	for i := range 1000 {
		many[fmt.Sprint("w", i)] = score{i % 3, 10}
	}
	expect.Len(t, (scoreboard{"p": many}).suspects(), 0, "among 1,000 equal workers, these are suspect")
}
