package slurm

import (
	"context"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/testlog"
	"github.com/tdf-framework/tdf/internal/testspace"
)

// An sbatch that is interrupted in the middle of an array cancels what it has submitted. If it is killed, the elements
// wait, squeue says why, and scancel ends this.
func TestNoPartOfAnArrayStarts(t *testing.T) {
	var out, problems testlog.Buffer
	a := cli.New(cli.Process{Stdout: &out, Stderr: &problems, Dir: t.TempDir()})
	a.Redis, a.Namespace = testspace.Embedded(t), redistest.Namespace(t)
	j := &job{a: a, name: "parts", script: "#!/bin/sh\n"}
	j.array = expect.Result(parseArray("1-5")).Value(t)
	expect.NoError(t, j.complete())
	expect.NoError(t, a.WithManager(t.Context(), func(m *cli.Client) error {
		interrupted, interrupt := context.WithCancel(t.Context())
		interrupt()
		base := expect.Result(j.properties(m, expect.Result(j.pack(nil)).Value(t), &dependencies{})).Value(t)
		base.Source = "https://example.org/run.sh" // which needs no stored program
		_, err := j.openArray(t.Context(), interrupted, m, base)
		expect.FailsWith(t, end(interrupted, a, "sbatch", err), context.Canceled)
		expect.Contains(t, problems.String(), "cancelling what was submitted, which may take minutes; a second signal ends this")
		expect.Contains(t, problems.String(), "no element of the array has started, and those that were submitted are cancelled")
		expect.Equal(t, expect.Result(m.Counts(t.Context())).Value(t).Unfinished(), int64(0))
		expect.Len(t, expect.Result(m.Pauses().All(t.Context())).Value(t), 0, "pauses")

		base.Group += "-2"
		a.Force = interrupted // by a second signal
		_, err = j.openArray(t.Context(), interrupted, m, base)
		expect.FailsWith(t, end(interrupted, a, "sbatch", err), context.Canceled)
		expect.Contains(t, problems.String(), "a part of the array may remain, and none of it starts: "+
			"squeue --name=parts shows its ID, and scancel ID removes it")
		expect.NoError(t, squeue(t.Context(), a, []string{"-ho", "%i %r"}))
		expect.Equal(t, out.String(), "2_[1] JobHeldAdmin\n")
		expect.NoError(t, scancel(t.Context(), a, []string{"2"}))
		expect.Len(t, expect.Result(m.Pauses().All(t.Context())).Value(t), 0, "pauses")
		return nil
	}))
}

// A limit of an array ends with the array, and no other limit does.
func TestForgetLimits(t *testing.T) {
	a := cli.New(cli.Process{Stdout: &testlog.Buffer{}, Stderr: &testlog.Buffer{}})
	a.Redis, a.Namespace = testspace.Embedded(t), redistest.Namespace(t)
	expect.NoError(t, a.WithManager(t.Context(), func(m *cli.Client) error {
		for _, group := range []string{"done", "live"} {
			d := testspace.Define("p", "https://example.org/run.sh", "")
			d.Group = group
			tasks := expect.Result(m.Open(t.Context(), d)).Value(t)
			expect.NoError(t, m.CloseGroup(t.Context(), group))
			if group == "done" {
				expect.Result(m.Cancel(t.Context(), tasks[0].Ref())).OK(t)
			}
		}
		for _, key := range []string{"done", arrayKey + "done", arrayKey + "live", arrayKey + "unknown"} {
			expect.NoError(t, m.Limits().Set(t.Context(), key, tdf.Limit{AtMost: 1}))
		}
		expect.NoError(t, forgetLimits(t.Context(), m))
		var left []string
		for _, l := range expect.Result(m.Limits().All(t.Context())).Value(t) {
			left = append(left, l.Key)
		}
		expect.Equal(t, left, []string{"done", arrayKey + "live", arrayKey + "unknown"})
		return nil
	}))
}
