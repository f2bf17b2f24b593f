package web

import (
	"bufio"
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tdf-framework/tdf/internal/pool"
	"github.com/tdf-framework/tdf/internal/results"
	"github.com/tdf-framework/tdf/internal/web/wire"
)

const csvType = "text/csv"

// addResults adds the routes about results.
func (a *api) addResults() {
	add(a, route{
		http.MethodGet, "/results", "get-results", "Read the results of tasks as CSV or JSON Lines", toSee,
		false,
	}, a.getResults)
	a.alsoAnswers("get-results", csvType, jsonLines)
}

type resultsInput struct {
	Filter
	Fields      string `query:"fields" enum:"auto,last-line,result.json" default:"auto" doc:"where the columns of results come from: result.json, the last line of stdout, or the last line only if there is no result.json. Of a last line, only numbers have columns"`
	NoOutput    bool   `query:"no_output" doc:"without stdout and stderr"`
	Spreadsheet bool   `query:"spreadsheet" doc:"with an apostrophe before cells that a spreadsheet would take for formulas"`
}

// streamed is an answer that a.stream has written.
type streamed struct{ Body func(huma.Context) }

// getResults writes the results of the tasks that a filter selects, sorted by id.
func (a *api) getResults(_ context.Context, c *call, in *resultsInput) (*streamed, error) {
	q := in.query(c)
	if err := q.Validate(); err != nil {
		return nil, err
	}
	if c.wants(jsonLines) {
		return nil, a.stream(c, jsonLines, func(s *stream) error {
			out := bufio.NewWriterSize(s, writeBuffer)
			if _, err := results.Lines(results.From(s.ctx, c.manager, q), wire.Encoder(out), !in.NoOutput); err != nil {
				return err
			}
			return out.Flush()
		})
	}
	return nil, a.stream(c, csvType+"; charset=utf-8", func(s *stream) error {
		out := bufio.NewWriterSize(s, writeBuffer)
		o := results.Options{
			Fields: in.Fields, Output: !in.NoOutput, Spreadsheet: in.Spreadsheet,
			Charge: func(n int64) error { return pool.Take(s.ctx, n) },
		}
		if _, err := results.CSV(results.From(s.ctx, c.manager, q), out, o); err != nil {
			return err
		}
		return out.Flush()
	})
}
