package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// The exit statuses of docs/tdf.md, "Exit status".
func TestStatus(t *testing.T) {
	interrupted, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("interrupted"))
	invalid := &task.PropertyError{Property: "queue", Reason: "is empty"}
	for _, test := range []struct {
		ctx  context.Context
		err  error
		want int
	}{
		{t.Context(), nil, 0},
		{t.Context(), errors.New("any error"), 1},
		{t.Context(), task.ErrNoTask, 1},
		{t.Context(), conn.ErrFull, 1},
		{t.Context(), PartlyError{invalid}, 1},
		{t.Context(), Usagef("invalid value"), 2},
		{t.Context(), invalid, 2},
		{t.Context(), fmt.Errorf("list: %w", &manager.QueryError{Problem: "unknown state"}), 2},
		{t.Context(), &config.Error{Problem: "invalid"}, 2},
		{t.Context(), &conn.RefusedError{Reason: "wrong password"}, 2},
		{t.Context(), ErrProblems, 3},
		{interrupted, fmt.Errorf("read: %w", context.Cause(interrupted)), 130},
	} {
		a := New(Process{Stdout: io.Discard, Stderr: io.Discard})
		a.parsed = true
		expect.Equal(t, a.status(test.ctx, test.err), test.want, test.err, "status")
	}
}
