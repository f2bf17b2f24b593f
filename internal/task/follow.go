package task

import (
	"slices"
	"strings"
)

// Limits of the tasks that one round can open: their number, and the size of open.jsonl in bytes.
const (
	MaxFollowing      = 1000
	MaxFollowingBytes = 4 << 20
)

// Follow returns the properties of a task that a round of t opens (docs/lifecycle.md, "Tasks that open tasks"). The new
// task has the properties of t, if the definition does not set others. It does not have those that belong to a single
// task: input and its encoding, meta, start_after, the unique key and the dependencies. The owner is always that of t.
// The error is a *[PropertyError].
func (t *Task) Follow(d *Definition) (Properties, error) {
	if t.Generations == 0 {
		return Properties{}, invalidProperty(fieldGenerations, "is 0, so the task can open no tasks")
	}
	p := t.Properties
	p.Input, p.Meta, p.StartAfter, p.After, p.AfterAny, p.Apart = "", "", 0, nil, nil, false
	p.Unique, p.UniqueUntil, p.InputEncoding = "", usual.UniqueUntil, usual.InputEncoding
	d.Fill(&p)
	p.Owner, p.Generations = t.Owner, min(p.Generations, t.Generations-1)
	if err := p.Validate(); err != nil {
		return p, err
	}
	return p, t.checkOwner(&p)
}

// OwnsName reports whether the tasks of an owner may have this name as their group or unique key (docs/tdf.md,
// "Tokens"). Every task may, if it has no owner.
func OwnsName(owner, name string) bool { return owner == "" || strings.HasPrefix(name, owner+"/") }

// checkOwner returns a *[PropertyError] if a new task of a program reaches what the owner of the program's task may not
// reach. Otherwise, a program could read the outputs of other owners' tasks, by waiting for them. The new task may be
// in the group of the program's task, but not wait for this group if it contains tasks of other owners, as those of
// Taskmaster do.
func (t *Task) checkOwner(p *Properties) error {
	if t.Owner == "" {
		return nil
	}
	names := []string{p.Unique}
	if p.Group != t.Group {
		names = append(names, p.Group)
	}
	for _, of := range []*Dependencies{p.After, p.AfterAny} {
		if of == nil {
			continue
		}
		names = append(names, of.Group)
		if slices.ContainsFunc(of.Tasks, func(id int64) bool { return id != t.ID }) {
			return invalidProperty(FieldAfter, "a task of %s can name other tasks only by their places", t.Owner)
		}
	}
	for _, name := range names {
		if name != "" && !OwnsName(t.Owner, name) {
			return invalidProperty(fieldGroup, "the names of groups and unique keys of %s begin with %s/, and not %q",
				t.Owner, t.Owner, shorten(name))
		}
	}
	if p.Queue != t.Queue {
		return invalidProperty(FieldQueue, "a task of %s opens tasks only in its own queue", t.Owner)
	}
	return nil
}
