package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tdf-framework/tdf"
)

// dryTasks is the number of tasks that --dry-run shows.
const dryTasks = 5

// show prints the plan for --dry-run: the number of tasks that tdf open would open, and the first few tasks.
func (p *plan) show() error {
	if err := p.showCommon(); err != nil {
		return err
	}
	if p.found.known > 0 {
		p.a.say("skipped %s that the campaign already has", counted(p.found.known, "point"))
	}
	p.a.sayRepeated(p.found.repeated)
	if len(p.first) > 0 {
		fmt.Fprintln(p.a.stdout)
		if err := p.showFirst(); err != nil {
			return err
		}
	}
	p.a.say("dry run: nothing was opened or stored")
	return nil
}

// showCommon prints the common properties of the tasks. It leaves out properties with their default values.
func (p *plan) showCommon() error {
	t := p.a.table("property", "value")
	t.row("tasks", number(p.found.admitted))
	t.row("program", p.base.Program)
	if p.base.Source != "" {
		t.row("source", tdf.HideCredentials(p.base.Source))
	}
	defaults := tdf.Defaults(p.base.Program, p.base.Source, p.base.Input)
	usual := defaults.OpenFields("")
	for _, f := range p.base.OpenFields("") {
		if f.Name != "meta" && f.Name != "place" && f.Name != "links" && !slices.Contains(usual, f) {
			t.row(f.Name, f.Value)
		}
	}
	return t.write()
}

// showFirst prints the first few tasks.
func (p *plan) showFirst() error {
	t := p.a.table("input", "meta")
	for _, d := range p.first {
		t.row(p.a.excerpt(d.Input), p.a.excerpt(d.Meta))
	}
	if rest := p.found.admitted - int64(len(p.first)); rest > 0 {
		defer p.a.say("and %d more", rest)
	}
	return t.write()
}

var inOneLine = strings.NewReplacer("\n", `\n`, "\r", `\r`, "\t", `\t`)

// excerpt returns a text, cut to half the width of the terminal. It keeps all blanks, because they matter in an input.
func (a *app) excerpt(text string) string {
	text = printable(inOneLine.Replace(text))
	runes := []rune(text)
	if limit := a.terminal.width / 2; limit > 0 && len(runes) > limit {
		text = string(runes[:limit-1]) + "…"
	}
	return text
}
