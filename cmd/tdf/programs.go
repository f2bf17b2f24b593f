package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/internal/jsonview"
	"github.com/tdf-framework/tdf/program"
)

func newPrograms(a *app) *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use: "programs", Short: "List, pin or remove stored programs",
		Long: "Lists the programs that are stored in Redis, and the number of tasks that use each program. The command reads all tasks.\n" +
			"This takes some seconds for a million tasks. If no task names a program, the server removes it a week after its last use, unless it is pinned.",
		Example: "  tdf programs rm --unused",
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withManager(c.Context(), func(m *client) error { return a.listPrograms(c.Context(), m, asJSON) })
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object per line")
	remove := newProgramsRemove(a)
	a.completeValues(remove)
	c.AddCommand(remove, newProgramsPin(a), newProgramsUnpin(a))
	return c
}

// redisSource is the prefix of the source of a stored program.
const redisSource = "redis:"

// A programJSON is the JSON form of a stored program.
type programJSON struct {
	Source     string   `json:"source"`
	Bytes      int64    `json:"bytes"`
	Names      []string `json:"names"` // at most 3 names
	Unfinished int64    `json:"unfinished_tasks"`
	Tasks      int64    `json:"tasks"`

	LastUse time.Time `json:"last_use,omitzero"`
	Pinned  bool      `json:"pinned,omitempty"`
}

// MarshalJSON writes the time as in docs/tdf.md, "JSON".
func (p programJSON) MarshalJSON() ([]byte, error) { return jsonview.Marshal(p) }

func (a *app) listPrograms(ctx context.Context, m *client, asJSON bool) error {
	stored, err := program.List(ctx, m.Manager)
	if err != nil {
		return err
	}
	if len(stored) == 0 {
		a.say("no programs in this namespace; store one with tdf push or tdf open --program DIR")
		return nil
	}
	uses, err := program.Uses(ctx, m.Manager)
	if err != nil {
		return err
	}
	t := a.table("name", "source", "bytes", "unfinished", "tasks", "last use")
	for _, p := range stored {
		use := uses[p.SHA256]
		if asJSON {
			line := programJSON{redisSource + p.SHA256, p.Bytes, append([]string{}, use.Names...), use.Unfinished, use.Tasks, p.LastUse, p.Pinned}
			if err := jsonLines(a.stdout).Encode(line); err != nil {
				return err
			}
			continue
		}
		t.row(strings.Join(use.Names, ", "), redisSource+p.SHA256, number(p.Bytes), number(use.Unfinished), number(use.Tasks), lastUse(p))
	}
	if asJSON {
		return nil
	}
	return t.write()
}

func lastUse(p program.Stored) string {
	if p.Pinned {
		return "pinned"
	}
	return clock(p.LastUse)
}
