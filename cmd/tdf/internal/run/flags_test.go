package run

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/expect"
)

// docs/from-parallel.md names each flag of tdf run, and each flag of GNU parallel that is refused, with its reason.
func TestPageForUsersOfParallel(t *testing.T) {
	page := string(expect.Result(os.ReadFile("../../../../docs/from-parallel.md")).Value(t))
	plain := strings.ReplaceAll(page, "`", "")
	for _, f := range new(run).flags() {
		named := regexp.MustCompile("--" + f.name + "\\b").MatchString(page)
		named = named || f.short != "" && regexp.MustCompile(" `?-"+f.short+"\\b").MatchString(page)
		expect.True(t, named, f.name)
	}
	for _, row := range refused {
		var all []string
		for _, name := range names(row.names) {
			switch long, short := name[0], name[1]; {
			case len(long) == 1:
				all = append(all, "-"+long)
			case short != "":
				all = append(all, "-"+short, "--"+long)
			default:
				all = append(all, "--"+long)
			}
		}
		expect.Contains(t, plain, "| "+strings.Join(all, ", ")+" | "+row.instead+" |\n")
	}
}

// tdf run knows each option of GNU parallel: it has it, or says what to write instead.
func TestEachOptionOfParallel(t *testing.T) {
	path := expect.Result(exec.LookPath("parallel")).Value(t)
	program := string(expect.Result(os.ReadFile(path)).Value(t))
	_, table, found := strings.Cut(program, "sub options_completion_hash() {")
	expect.MustTrue(t, found, "options of GNU parallel")
	table, _, _ = strings.Cut(table, "\nsub ")
	flags := Run(cli.New(cli.Process{})).Flags()
	known := func(name string) bool {
		if len(name) == 1 {
			return flags.ShorthandLookup(name) != nil
		}
		return flags.Lookup(name) != nil
	}
	table = regexp.MustCompile(`(?m)^\s*#.*$`).ReplaceAllString(table, "")
	table = regexp.MustCompile(`"\s*\.\s*"|'\s*\.\s*'`).ReplaceAllString(table, "")
	options := regexp.MustCompile(`(?:"([^"]*)"|'([^']*)')\s*\)?\s*=>\s*\\[$@%]opt::(\w+)`).FindAllStringSubmatch(table, -1)
	expect.Compare(t, len(options), ">", 150)
	for _, option := range options {
		names, _, _ := strings.Cut(regexp.MustCompile("[[:=]").ReplaceAllString(option[1]+option[2], "["), "[")
		for name := range strings.SplitSeq(names, "|") {
			if !own[name] && option[3] != "retired" && !strings.HasPrefix(name, "_") {
				expect.True(t, known(name), name)
			}
		}
	}
}

// own are the options that are no habits: of help, of an earlier GNU parallel, and of its own tools.
var own = map[string]bool{
	"help": true, "h": true, "version": true, "V": true, "citation": true, "bibtex": true, "nn": true,
}
