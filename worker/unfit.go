package worker

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/tdf-framework/tdf/fetch"
)

// An unfitError is why a round could not even start that another host might well run: its task
// is given back (docs/lifecycle.md, "Released rounds").
type unfitError struct{ err error }

func (e *unfitError) Error() string { return e.err.Error() }
func (e *unfitError) Unwrap() error { return e.err }

func unfit(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		err = fmt.Errorf("the worker's disk is full: %w", err)
	}
	return &unfitError{err}
}

func isUnfit(err error) bool {
	var u *unfitError
	return errors.As(err, &u)
}

// unfitFetch tells a fetch that may go well on another host from one that fails everywhere.
func unfitFetch(err error) error {
	var failed *fetch.Error
	if errors.As(err, &failed) && failed.Local() {
		return &unfitError{err}
	}
	return err
}
