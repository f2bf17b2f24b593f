package redisstate_test

import (
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

// The files of a round are read only by those who ask for them.
func TestFilesOfARound(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		for _, size := range []int{10, 3 * redisstate.SmallBytes, redisstate.ReadAtOnce + 1} {
			d := task.Defaults("p", "exec:", "true")
			d.Fetch = []string{"out/*"}
			id := mustOpen(t, s, d)[0]
			c := mustClaim(t, s, 1)[0]
			expect.Equal(t, c.Task.Fetch, d.Fetch)
			packed := strings.Repeat("x", size)
			result := rules.Result{Exit: "0", Output: "hello", Packed: packed, Files: task.Files{Count: 2, Bytes: 12}}
			mustExecute(t, s, c, result)
			whole := expect.Result(s.ReadOne(t.Context(), id, redisstate.Want{Fields: redisstate.Whole})).Value(t).Task.Current()
			expect.Equal(t, whole.Output, "hello")
			expect.Equal(t, whole.Packed, "")
			expect.Equal(t, whole.Files, result.Files)
			facts := expect.Result(s.ReadOne(t.Context(), id, redisstate.Want{Fields: redisstate.Facts, Rounds: redisstate.LastRounds(1)})).Value(t).Task.Current()
			expect.Equal(t, facts.Packed, "")
			expect.Equal(t, facts.Files, result.Files)
			files := redisstate.SameTexts(redisstate.TextsOf{Texts: task.TextFiles})
			asked := expect.Result(s.ReadOne(t.Context(), id, redisstate.Want{Fields: redisstate.Head, Texts: files})).Value(t).Task.Current()
			expect.True(t, asked.Packed == packed, "the files differ", size)
		}
	})
}
