package rules

import (
	"strconv"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
)

func TestFilesOfARound(t *testing.T) {
	for _, files := range []task.Files{{Count: 3, Bytes: 12}, {Kept: "too many; on w in /a b"}} {
		one := taskIn(task.Running)
		m, err := Execute(one, "c", Result{Exit: "0", Packed: "tar", Files: files})
		expect.NoError(t, err)
		h := task.Hash{task.FieldRound: strconv.Itoa(m.Round)}
		for _, f := range m.Set {
			h[f.Name] = f.Value
		}
		found, _ := task.ParseTask(1, h)
		r := found.Rounds.At(m.Round)
		expect.Equal(t, r.Files, files)
		expect.Equal(t, r.Packed, "tar")
	}
	expect.Equal(t, task.ParseFiles("x"), task.Files{})
	expect.Equal(t, task.ParseFiles("-1 -2"), task.Files{})
}
