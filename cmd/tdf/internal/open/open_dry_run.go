package open

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/internal/task"
)

// dryTasks is the number of tasks that --dry-run shows.
const dryTasks = 5

// show prints the plan for --dry-run: the number of tasks that tdf open would open, and the first few tasks.
func (all plans) show() error {
	p := all[0]
	total, known := all.total()
	if err := p.showCommon(total); err != nil {
		return err
	}
	if known > 0 {
		p.a.Say("skipped %s that the campaign already has", format.Counted(known, "point"))
	}
	var repeated int64
	for _, p := range all {
		repeated += p.found.Repeated
	}
	sayRepeated(p.a, repeated)
	if total > 0 {
		fmt.Fprintln(p.a.Stdout)
		if err := all.showFirst(total); err != nil {
			return err
		}
	}
	p.a.Say("dry run: nothing was opened or stored")
	return nil
}

// showCommon prints the common properties of the tasks. It leaves out properties with their default values.
func (p *plan) showCommon(total int64) error {
	t := p.a.Table("property", "value")
	t.Row("tasks", format.Number(total))
	t.Row("program", p.base.Program)
	if p.base.Source != "" {
		t.Row("source", task.HideCredentials(p.base.Source))
	}
	defaults := task.Defaults(p.base.Program, p.base.Source, p.base.Input)
	usual := defaults.OpenFields("")
	for _, f := range p.base.OpenFields("") {
		if f.Name != "meta" && f.Name != "place" && f.Name != "links" && !slices.Contains(usual, f) {
			t.Row(f.Name, f.Value)
		}
	}
	return t.Write()
}

// showFirst prints the first few tasks.
func (all plans) showFirst(total int64) error {
	a := all[0].a
	t := a.Table("input", "meta")
	shown := 0
	for _, p := range all {
		for _, d := range p.first[:min(len(p.first), dryTasks-shown)] {
			t.Row(excerpt(a, d.Input), excerpt(a, d.Meta))
			shown++
		}
	}
	if rest := total - int64(shown); rest > 0 {
		defer a.Say("and %d more", rest)
	}
	return t.Write()
}

var inOneLine = strings.NewReplacer("\n", `\n`, "\r", `\r`, "\t", `\t`)

// excerpt returns a text, cut to half the width of the terminal. It keeps all blanks, because they matter in an input.
func excerpt(a *cli.App, text string) string {
	text = format.Printable(inOneLine.Replace(text))
	runes := []rune(text)
	if limit := a.Terminal.Width / 2; limit > 0 && len(runes) > limit {
		text = string(runes[:limit-1]) + "…"
	}
	return text
}
