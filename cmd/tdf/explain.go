package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/admin"
)

func newExplain(a *app) *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use: "explain ID", Short: "Say what a task waits for",
		Long: "Lists what a task has to pass until it is done: what it has passed, what holds it now, and what would change that.\n" +
			"The status is 3 when something holds it. Whether a source of http is there is asked from here; workers may see it otherwise.",
		Example: "  tdf explain 17",
		Args:    one("ID"),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := parseID(args[0])
			if err != nil {
				return usage("%q is not the id of a task", args[0])
			}
			m, err := a.manager(c.Context())
			if err != nil {
				return err
			}
			defer m.Close()
			return a.explain(c.Context(), m, id, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "as a JSON object")
	return c
}

func (a *app) explain(ctx context.Context, m *client, id int64, asJSON bool) error {
	e, err := m.admin().Explain(ctx, id)
	if errors.Is(err, tdf.ErrNoTask) {
		err = a.noTask(ctx, m, id)
	}
	if err != nil {
		return err
	}
	if asJSON {
		err = jsonLines(a.stdout).Encode(e)
	} else {
		err = a.checklist(e)
	}
	if err == nil && e.Blocked() {
		err = errNotWell
	}
	return err
}

var marks = map[admin.CheckState]string{admin.Passed: "ok", admin.Blocked: "BLOCKED", admin.Ahead: "ahead"}

func (a *app) checklist(e admin.Explanation) error {
	var b strings.Builder
	state := string(e.State)
	if e.Outcome != "" && e.Outcome != state {
		state += " (" + e.Outcome + ")"
	}
	fmt.Fprintf(&b, "task %d is %s, in round %d\n", e.ID, oneLine(state, 0), e.Round)
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, g := range e.Checks {
		fmt.Fprintf(t, "  %s\t%s\t%s\n", marks[g.State], g.Name, oneLine(g.Text, 0))
		if g.Fix != "" {
			fmt.Fprintf(t, "  \t\t-> %s\n", oneLine(g.Fix, 0))
		}
	}
	t.Flush()
	_, err := io.WriteString(a.stdout, b.String())
	return err
}
