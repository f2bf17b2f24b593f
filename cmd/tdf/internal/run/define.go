package run

import (
	"context"
	"strings"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/program"
)

// define determines the properties that all tasks have.
func (c *campaign) define(ctx context.Context) error {
	name, source := c.programName(), task.SchemeExec+":"+c.dir
	if c.ownDir || c.sends() {
		source = task.SchemeExec + ":"
	}
	if c.packs() {
		packed, err := c.pack()
		if err != nil {
			return err
		}
		err = cli.StoreProgram(ctx, c.m, packed, c.say)
		if err != nil {
			return err
		}
		name, source = packed.Name, packed.Source
	}
	changes, err := c.task.Read(ctx, c.m)
	if err != nil {
		return err
	}
	c.base, err = c.after.Properties(changes.Apply(c.m.Define(name, source, "")))
	if err != nil {
		return err
	}
	if c.packs() {
		c.base.Generations = 0 // the input is a command, so a worker that opened tasks would choose what others run
	}
	c.base.Group = c.campaignName(name)
	if c.retries > 0 {
		c.base.MaxFails = c.retries - 1
		if !c.changed("max-timeouts") {
			c.base.MaxTimeouts = c.retries - 1
		}
		if c.retries > 1 && !c.changed("max-attempts") { // the limits count apart
			c.base.MaxAttempts = c.retries
		}
	}
	if !c.elsewhere() {
		c.base.Queue, c.base.Tags, c.base.ByGroup = "", c.here.tags, c.here.tags != nil
	}
	switch {
	case c.log != nil && !c.here.temporary:
		c.base.CorrelationID = c.log.mark()
	case c.here.temporary && !c.writesTable():
		c.base.KeepArchived = 0 // so that an endless input needs no endless memory
	}
	return nil
}

// programName returns the name of the program of the tasks, unless files are sent.
func (c *campaign) programName() string {
	first := c.template.command[0]
	if c.mayDiffer(first) {
		return "command"
	}
	return program.NameAfter(first[strings.LastIndexByte(first, '/')+1:])
}

func (c *campaign) campaignName(name string) string {
	if c.run.campaign != "" {
		return c.run.campaign
	}
	stamp := c.began.UTC().Format("-20060102-150405-") + c.id + c.log.markOfCampaign()
	return strings.ToValidUTF8(name[:min(len(name), task.MaxName-len(stamp))], "") + stamp
}
