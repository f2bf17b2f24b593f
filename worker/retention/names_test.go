package retention

import (
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// In each execution of a round, the directories beside the output file are named after that file.
func TestNamesOfExecutions(t *testing.T) {
	for _, c := range []struct{ pattern, first, second, files string }{
		{"$program/$taskId-$round.out", "$program/$taskId-$round.out", "$program/$taskId-$round~2.out", "$program/$taskId-$round~2.files"},
		{"a.b/$taskId", "a.b/$taskId", "a.b/$taskId~2", "a.b/$taskId~2.files"},
		{"out.$taskId", "out.$taskId", "out.$taskId~2", "out.$taskId~2.files"},
	} {
		expect.Equal(t, Execution(c.pattern, 1), c.first, "first")
		expect.Equal(t, Execution(c.pattern, 2), c.second, "second")
		expect.Equal(t, Execution(Beside(c.pattern, ".files"), 2), c.files, "beside")
	}
}
