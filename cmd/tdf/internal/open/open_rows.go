package open

import (
	"context"
	"fmt"
	"iter"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/sweep"
)

// A rowSource reads the rows of a sweep.
type rowSource struct {
	*cli.Rows                 // nil if the command opens one task instead of a sweep
	input     *sweep.Template // nil if run.sh gets all parameters in their order
}

// sweep returns the rows and the template that the flags describe.
func (o *opening) sweep(ctx context.Context) (*rowSource, error) {
	s := &rowSource{}
	var err error
	switch {
	case o.grid != "":
		s.Rows, err = cli.GridRows(o.grid)
	case o.from != "":
		s.Rows, err = o.a.FileRows(ctx, o.from, o.format)
	default:
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	if o.changed("input") {
		s.input, err = sweep.ParseTemplate(o.input)
	}
	if err != nil {
		s.Close()
		return nil, cli.Usagef("--input: %v", err)
	}
	return s, nil
}

func (s *rowSource) close() {
	if s.Rows != nil {
		s.Close()
	}
}

// isOnce reports whether the rows can be read only once.
func (s *rowSource) isOnce() bool { return s.Rows != nil && s.Once }

// candidates returns a candidate for each row.
func (s *rowSource) candidates(d task.Properties) iter.Seq2[sweep.Candidate, error] {
	return func(yield func(sweep.Candidate, error) bool) {
		if s.Rows == nil {
			yield(sweep.Candidate{Task: d}, nil)
			return
		}
		if err := s.each(d, func(c sweep.Candidate) bool { return yield(c, nil) }); err != nil {
			yield(sweep.Candidate{}, fmt.Errorf("%s: %w", s.Name, err))
		}
	}
}

func (s *rowSource) each(d task.Properties, yield func(sweep.Candidate) bool) error {
	rows, err := s.Read()
	if err != nil {
		return err
	}
	for row, err := range rows {
		if err != nil {
			return err
		}
		c, err := row.Candidate(d, s.input)
		if err != nil {
			return err
		}
		if !yield(c) {
			return nil
		}
	}
	return nil
}
