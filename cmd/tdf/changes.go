package main

import (
	"context"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/program"
)

// changes are the flags of what is to be changed about tasks.
type changes struct {
	task                   taskFlags
	input, program, source string
}

func (c *changes) addTo(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&c.input, "input", "", "the arguments of run.sh: `WORDS`")
	flags.StringVar(&c.program, "program", "", "another program: a `DIR`, which is stored in Redis, or a name with --source")
	flags.StringVar(&c.source, "source", "", "where to get the program: `SOURCE`")
	c.task.flags(cmd)
}

func (c *changes) any() bool {
	return slices.ContainsFunc(append([]string{"input", "program", "source"}, propertyFlags...), c.task.changed)
}

// check refuses wrong flags before anything is asked of Redis.
func (c *changes) check() error {
	if err := c.task.check(); err != nil || !c.task.changed("program") || c.source != "" {
		return err
	}
	if info, err := os.Stat(c.program); err != nil || !info.IsDir() {
		return usage("--program %s is no directory here; a program that is elsewhere needs --source SOURCE (docs/programs.md)", c.program)
	}
	return nil
}

// read returns the changes that the flags ask for, and the program, if that is a directory, which is to be stored.
func (c *changes) read(ctx context.Context, m *client) (tdf.Changes, *program.Packed, error) {
	all, err := c.task.read(ctx, m)
	if err != nil {
		return all, nil, err
	}
	if c.task.changed("input") {
		all.Input = &c.input
	}
	if c.task.changed("source") {
		all.Source = &c.source
	}
	packed, err := c.readProgram(&all)
	if err == nil {
		err = wrongForAll(all)
	}
	return all, packed, err
}

// wrongForAll refuses at once what makes no sense whichever task it is done to.
func wrongForAll(c tdf.Changes) error {
	d := c.Apply(tdf.Defaults("any", "rsync:/any/run.sh", ""))
	if err := d.Validate(); err != nil {
		return usage("%v", err)
	}
	return nil
}

// readProgram adds the program to the changes.
func (c *changes) readProgram(all *tdf.Changes) (*program.Packed, error) {
	if !c.task.changed("program") {
		return nil, nil
	}
	all.Program = &c.program
	if c.source != "" {
		return nil, nil
	}
	packed, err := program.Pack(c.program)
	if err != nil {
		return nil, usage("%v", err)
	}
	all.Program, all.Source = &packed.Name, &packed.Source
	return &packed, nil
}
