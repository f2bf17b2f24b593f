package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// Paging holds the flags that limit and continue a long list.
type Paging struct {
	Limit  int
	Cursor string
	All    bool
}

// Flags adds the flags to a command that lists items.
func (p *Paging) Flags(c *cobra.Command, limit int, items string) {
	c.Flags().IntVar(&p.Limit, "limit", limit, "`N` maximum number of "+items)
	c.Flags().StringVar(&p.Cursor, "cursor", "", "`CURSOR` continuation point, as printed by an earlier call")
	c.Flags().BoolVar(&p.All, "all", false, "all "+items+", without a limit on their number or on the time of the search")
}

func (p *Paging) Check() error {
	if p.Limit < 1 {
		return Usagef("invalid value %d for --limit: want at least 1", p.Limit)
	}
	return nil
}

// NextPage returns the command that prints the next page of a list.
func NextPage(command, cursor string) string {
	return fmt.Sprintf("tdf %s … --cursor %s (or --all)", command, cursor)
}
