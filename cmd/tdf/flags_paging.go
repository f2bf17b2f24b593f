package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// paging holds the flags that limit and continue a long list.
type paging struct {
	limit  int
	cursor string
	all    bool
}

// flags adds the flags to a command that lists items.
func (p *paging) flags(c *cobra.Command, limit int, items string) {
	c.Flags().IntVar(&p.limit, "limit", limit, "`N` maximum number of "+items)
	c.Flags().StringVar(&p.cursor, "cursor", "", "`CURSOR` continuation point, as printed by an earlier call")
	c.Flags().BoolVar(&p.all, "all", false, "all "+items+", without a limit on their number or on the time of the search")
}

func (p *paging) check() error {
	if p.limit < 1 {
		return usage("invalid value %d for --limit: want at least 1", p.limit)
	}
	return nil
}

// nextPage returns the command that prints the next page of a list.
func nextPage(command, cursor string) string {
	return fmt.Sprintf("tdf %s … --cursor %s (or --all)", command, cursor)
}
