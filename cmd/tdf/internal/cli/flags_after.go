package cli

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/tdf-framework/tdf/internal/task"
)

// AfterFlags holds the flags that name the dependencies of new tasks.
type AfterFlags struct {
	tasks, anyTasks string
	Group, AnyGroup string
}

// Flags adds the flags to a command.
func (f *AfterFlags) Flags(flags *pflag.FlagSet) {
	flags.StringVar(&f.tasks, "after", "", "`IDS` tasks that must succeed before the new tasks run: 3,7-9")
	flags.StringVar(&f.anyTasks, "after-any", "",
		"`IDS` tasks that must end before the new tasks run, with any outcome")
	flags.StringVar(&f.Group, "after-campaign", "",
		"`NAME` campaign of which all tasks must succeed before the new tasks run")
	flags.StringVar(&f.AnyGroup, "after-campaign-any", "",
		"`NAME` campaign that must be complete before the new tasks run, with any outcomes")
}

// Given reports whether new tasks have dependencies.
func (f *AfterFlags) Given() bool { return *f != AfterFlags{} }

// HasTasks reports whether new tasks depend on tasks that are named by their ids.
func (f *AfterFlags) HasTasks() bool { return f.tasks+f.anyTasks != "" }

// Properties returns the properties d with the dependencies of the flags.
func (f *AfterFlags) Properties(d task.Properties) (task.Properties, error) {
	var err error
	d.After, err = dependencies("after", f.tasks, f.Group)
	if err != nil {
		return d, err
	}
	d.AfterAny, err = dependencies("after-any", f.anyTasks, f.AnyGroup)
	return d, err
}

func dependencies(flag, ids, group string) (*task.Dependencies, error) {
	if ids == "" && group == "" {
		return nil, nil
	}
	d := &task.Dependencies{Group: group}
	var err error
	if ids != "" {
		d.Tasks, err = ParseIDs(strings.Split(ids, ","))
		if err != nil {
			return nil, Usagef("--%s: %v", flag, err)
		}
	}
	return d, nil
}
