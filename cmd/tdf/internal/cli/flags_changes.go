package cli

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/program"
	"github.com/tdf-framework/tdf/sweep"
)

// Changes holds the flags of set and retry that change properties of tasks.
type Changes struct {
	a                      *App
	task                   TaskFlags
	input, program, source string
	handler                bool
	params                 []string
}

// AddTo adds the flags to a command.
func (c *Changes) AddTo(a *App, cmd *cobra.Command) {
	c.a = a
	flags := cmd.Flags()
	flags.StringVar(&c.input, "input", "",
		"`WORDS` arguments of run.sh; with --param, a template in which {NAME} stands for a parameter")
	flags.StringArrayVar(&c.params, "param", nil,
		"`NAME=VALUE` new value of a parameter; without --input, the arguments of run.sh are all parameters in their order")
	flags.StringVar(&c.program, "program", "",
		"`DIR|NAME` new program: a directory, which tdf stores in Redis, or a name together with --source or --handler")
	flags.StringVar(&c.source, "source", "", "`SOURCE` address from which workers fetch the program")
	flags.BoolVar(&c.handler, "handler", false, "no source: only workers with a handler for the program run the task")
	c.task.Flags(cmd)
}

// Given reports whether the user gave any of the flags.
func (c *Changes) Given() bool {
	return slices.ContainsFunc([]string{"input", "param", "program", "source", "handler"}, c.task.changed) ||
		slices.ContainsFunc(propertiesWithFlag(), func(p *task.Property) bool { return c.task.changed(p.Flag()) })
}

// Check returns an error for invalid flags. It needs no connection to Redis.
func (c *Changes) Check() error {
	if err := c.task.Check(); err != nil {
		return err
	}
	if _, err := c.Each(manager.Changes{}); err != nil {
		return err
	}
	info, err := os.Stat(c.a.Path(c.program))
	isDir := err == nil && info.IsDir()
	switch {
	case c.handler && c.source != "":
		return SourceWithHandler()
	case c.handler && isDir && strings.ContainsRune(c.program, '/'):
		return HandlerWithDirectory(c.program)
	case c.task.changed("program") && c.source == "" && !c.handler && !isDir:
		return NotADirectory(c.program)
	}
	return nil
}

// NotADirectory returns the error for a command without --source and --handler whose --program is not a directory.
func NotADirectory(given string) error {
	return Usagef("invalid value %q for --program: no such directory; a program stored elsewhere needs --source "+
		"SOURCE, "+
		"and a program that handlers of workers run needs --handler (docs/programs.md)", given)
}

func SourceWithHandler() error {
	return Usagef("--source with --handler: a task with a source is not for handlers; give one of them")
}

func HandlerWithDirectory(given string) error {
	return Usagef("--handler with the directory %s: a handler has a name, and needs no directory; leave --handler "+
		"out, or give the name", given)
}

// Read returns the changes. If --program is a directory, read also packs and returns the program.
func (c *Changes) Read(ctx context.Context, m *Client) (manager.Changes, *program.Packed, error) {
	all, err := c.task.Read(ctx, m)
	if err != nil {
		return all, nil, err
	}
	if c.task.changed("input") {
		all.Input = &c.input
	}
	if c.task.changed("source") || c.handler {
		all.Source = &c.source // with --handler, ""
	}
	packed, err := c.readProgram(&all)
	if err != nil {
		return all, packed, err
	}
	return all, packed, checkForAnyTask(all)
}

// Each returns a function that makes the changes of each task, or nil if all tasks get the same changes.
func (c *Changes) Each(all manager.Changes) (func(*task.Task) (task.Changes, error), error) {
	if len(c.params) == 0 {
		return nil, nil
	}
	if c.task.changed("meta") {
		return nil, Usagef("--param with --meta: the parameters are the meta; give one of them")
	}
	var values []sweep.Param
	for _, text := range c.params {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return nil, Usagef("invalid value %q for --param: want NAME=VALUE", text)
		}
		values = append(values, sweep.Param{Name: name, Text: value})
	}
	if !c.task.changed("input") {
		return sweep.Changing(all, values, nil), nil
	}
	template, err := sweep.ParseTemplate(c.input)
	if err != nil {
		return nil, Usagef("--input: %v", err)
	}
	return sweep.Changing(all, values, template), nil
}

// checkForAnyTask refuses changes that are invalid for every task.
func checkForAnyTask(c manager.Changes) error {
	d := c.Apply(task.Defaults("any", "rsync:/any/run.sh", ""))
	if err := d.Validate(); err != nil {
		return Usagef("%v", err)
	}
	return nil
}

// readProgram adds the program to the changes.
func (c *Changes) readProgram(all *manager.Changes) (*program.Packed, error) {
	if !c.task.changed("program") {
		return nil, nil
	}
	all.Program = &c.program
	if c.source != "" || c.handler {
		return nil, nil
	}
	packed, err := program.Pack(c.a.Path(c.program))
	if err != nil {
		return nil, Usagef("%v", err)
	}
	all.Program, all.Source = &packed.Name, &packed.Source
	return &packed, nil
}
