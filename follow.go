package tdf

// Limits of the tasks that one round can open: their number, and the size of open.jsonl in bytes.
const (
	MaxFollowing      = 1000
	MaxFollowingBytes = 4 << 20
)

// Follow returns the properties of a task that a round of t opens (docs/lifecycle.md, "Tasks that open tasks"). The new task has the
// properties of t, if the definition does not set others. It does not have those that belong to a single task: input, meta,
// start_after, the unique key and the dependencies. The owner is always that of t. The error is a *[PropertyError].
func (t *Task) Follow(d *Definition) (Properties, error) {
	if t.Generations == 0 {
		return Properties{}, invalidProperty(fieldGenerations, "is 0, so the task can open no tasks")
	}
	p := t.Properties
	p.Input, p.Meta, p.StartAfter, p.After, p.AfterAny, p.Apart = "", "", 0, nil, nil, false
	p.Unique, p.UniqueUntil = "", usual.UniqueUntil
	d.Fill(&p)
	p.Owner, p.Generations = t.Owner, min(p.Generations, t.Generations-1)
	return p, p.Validate()
}
