package task_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
)

func TestCodeOf(t *testing.T) {
	_, missing := os.Open("no/such/file") // syscall.Errno has the methods of a net.Error
	for _, test := range []struct {
		err  error
		want task.Code
	}{
		{nil, ""},
		{errors.New("anything"), task.CodeFailed},
		{missing, task.CodeFailed},
		{task.ErrNoTask, task.CodeNotFound},
		{fmt.Errorf("read task 7: %w", task.ErrNoTask), task.CodeNotFound},
		{errors.Join(errors.New("first"), rules.ErrUnchanged), task.CodeConflict},
		{&rules.StateError{ID: 7, Verb: rules.VerbCancel, State: task.Archived}, task.CodeConflict},
		{&rules.StateError{ID: 7, Verb: rules.VerbCancel, State: task.None}, task.CodeNotFound},
		{&task.GroupError{Group: "g", Err: task.ErrGroupEmpty}, task.CodeNotFound},
		{&task.GroupError{Group: "g", Err: task.ErrGroupClosed}, task.CodeConflict},
		{fmt.Errorf("open: %w", &task.PropertyError{Property: "queue"}), task.CodeInvalid},
		{context.Canceled, task.CodeCancelled},
		{fmt.Errorf("read: %w", context.DeadlineExceeded), task.CodeUnavailable},
		{&net.OpError{Op: "dial", Err: errors.New("refused")}, task.CodeUnavailable},
	} {
		expect.Equal(t, task.CodeOf(test.err), test.want, test.err, "code")
	}
}
