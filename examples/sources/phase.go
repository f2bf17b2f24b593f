package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/manager"
)

const input = `one "and two"`

// A row is what became of a try.
type row struct {
	try
	outcome string // succeeded, failed, …, or refused: it was not opened
	sha256  string // of what was fetched
	text    string // the error, or what it printed
	as      bool   // as expected
}

// phase opens a task for each try, all in one group, and returns what became of them.
func phase(ctx context.Context, m *manager.Manager, group string, tries []try) ([]row, error) {
	rows := make([]row, len(tries))
	at := map[string]*row{}
	for i, try := range tries {
		rows[i].try = try
		at[try.name] = &rows[i]
		_, err := m.Open(ctx, manager.Definition{Program: try.name, Source: try.source, Input: input, Group: group})
		if err != nil {
			rows[i].conclude("refused", "", "", err.Error())
		}
	}
	note := func(_ context.Context, t *manager.Finished) error {
		if r := at[t.Program]; r != nil {
			r.conclude(t.Outcome, sha256Of(t.Task), t.Output(), t.Error())
		}
		return nil
	}
	err := m.Run(ctx, manager.Callbacks{
		Groups: []string{group}, Succeeded: note, Failed: note, TimedOut: note, Expired: note,
	})
	return rows, err
}

// sha256Of names what was fetched for the last run.
func sha256Of(t *manager.Task) string {
	if run := t.LastRun(); run != nil {
		return run.ProgramSHA256
	}
	return ""
}

func (r *row) conclude(outcome, sha256, output, failure string) {
	r.outcome, r.sha256 = outcome, sha256
	if r.text = strings.TrimSpace(output); r.text == "" {
		r.text = strings.TrimSpace(failure)
	}
	if r.want == "" {
		r.as = outcome == string(tdf.Succeeded) && output == "run.sh got: one and two\n" && len(sha256) == 64
		return
	}
	r.as = outcome != string(tdf.Succeeded) && strings.Contains(failure, r.want)
}

// compare marks rows that are not as they were before: fetched anew, or something else.
func compare(rows, before []row) {
	for i := range rows {
		if rows[i].sha256 != before[i].sha256 {
			rows[i].as = false
			rows[i].text = fmt.Sprintf("its program is another one than before: %s", rows[i].sha256)
		}
	}
}

// print writes a table, and returns how many rows are not as expected.
func printRows(w io.Writer, title string, rows []row) (wrong int) {
	fmt.Fprintf(w, "\n%s\n\n", title)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		mark := "ok"
		if !r.as {
			mark = "NOT AS EXPECTED"
			wrong++
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", mark, r.source, r.outcome, strings.ReplaceAll(r.text, "\n", " / "))
	}
	table.Flush()
	return wrong
}
