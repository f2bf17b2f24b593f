package tdf_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
)

func TestCodeOf(t *testing.T) {
	_, missing := os.Open("no/such/file") // syscall.Errno has the methods of a net.Error
	for _, test := range []struct {
		err  error
		want tdf.Code
	}{
		{nil, ""},
		{errors.New("anything"), tdf.CodeFailed},
		{missing, tdf.CodeFailed},
		{tdf.ErrNoTask, tdf.CodeNotFound},
		{fmt.Errorf("read task 7: %w", tdf.ErrNoTask), tdf.CodeNotFound},
		{errors.Join(errors.New("first"), tdf.ErrUnchanged), tdf.CodeConflict},
		{&tdf.StateError{ID: 7, Verb: tdf.VerbCancel, State: tdf.Archived}, tdf.CodeConflict},
		{&tdf.StateError{ID: 7, Verb: tdf.VerbCancel, State: tdf.None}, tdf.CodeNotFound},
		{&tdf.GroupError{Group: "g", Err: tdf.ErrGroupEmpty}, tdf.CodeNotFound},
		{&tdf.GroupError{Group: "g", Err: tdf.ErrGroupClosed}, tdf.CodeConflict},
		{fmt.Errorf("open: %w", &tdf.PropertyError{Property: "queue"}), tdf.CodeInvalid},
		{context.Canceled, tdf.CodeCancelled},
		{fmt.Errorf("read: %w", context.DeadlineExceeded), tdf.CodeUnavailable},
		{&net.OpError{Op: "dial", Err: errors.New("refused")}, tdf.CodeUnavailable},
	} {
		expect.Equal(t, tdf.CodeOf(test.err), test.want, test.err, "code")
	}
}
