package retention

import "testing"

// In each execution of a round, the directories beside the output file are named after that file.
func TestNamesOfExecutions(t *testing.T) {
	for _, c := range []struct{ pattern, first, second, files string }{
		{"$program/$taskId-$round.out", "$program/$taskId-$round.out", "$program/$taskId-$round~2.out", "$program/$taskId-$round~2.files"},
		{"a.b/$taskId", "a.b/$taskId", "a.b/$taskId~2", "a.b/$taskId~2.files"},
		{"out.$taskId", "out.$taskId", "out.$taskId~2", "out.$taskId~2.files"},
	} {
		if got := Execution(c.pattern, 1); got != c.first {
			t.Errorf("first: %s, want %s", got, c.first)
		}
		if got := Execution(c.pattern, 2); got != c.second {
			t.Errorf("second: %s, want %s", got, c.second)
		}
		if got := Execution(Beside(c.pattern, ".files"), 2); got != c.files {
			t.Errorf("beside: %s, want %s", got, c.files)
		}
	}
}
