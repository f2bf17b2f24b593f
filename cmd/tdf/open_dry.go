package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tdf-framework/tdf"
)

// dryTasks is how many tasks --dry-run shows.
const dryTasks = 5

// show prints what would be opened.
func (p *plan) show() error {
	if err := p.showCommon(); err != nil {
		return err
	}
	if p.found.known > 0 {
		p.a.say("%s are there already", counted(p.found.known, "point"))
	}
	tellDouble(p.a, p.found.double)
	if len(p.first) > 0 {
		fmt.Fprintln(p.a.stdout)
		if err := p.showFirst(); err != nil {
			return err
		}
	}
	p.a.say("nothing was opened or stored: this was a dry run")
	return nil
}

// showCommon prints what all tasks have in common, as far as it is not the default.
func (p *plan) showCommon() error {
	s := p.a.sheet("property", "value")
	s.row("tasks", fmt.Sprint(p.found.admitted))
	s.row("program", p.base.Program)
	s.row("source", tdf.HideCredentials(p.base.Source))
	defaults := tdf.Defaults(p.base.Program, p.base.Source, p.base.Input)
	plain := defaults.OpenFields("")
	for _, f := range p.base.OpenFields("") {
		if f.Name != "meta" && !slices.Contains(plain, f) {
			s.row(f.Name, f.Value)
		}
	}
	return s.write()
}

// showFirst prints the first few tasks.
func (p *plan) showFirst() error {
	s := p.a.sheet("input", "meta")
	for _, d := range p.first {
		s.row(p.a.shown(d.Input), p.a.shown(d.Meta))
	}
	if rest := p.found.admitted - int64(len(p.first)); rest > 0 {
		defer p.a.say("and %d more", rest)
	}
	return s.write()
}

var inOneLine = strings.NewReplacer("\n", `\n`, "\r", `\r`, "\t", `\t`)

// shown makes a text fit for a column, without changing its blanks.
func (a *app) shown(text string) string {
	text = printable(inOneLine.Replace(text))
	runes := []rune(text)
	if most := a.style.width / 2; most > 0 && len(runes) > most {
		text = string(runes[:most-1]) + "…"
	}
	return text
}
