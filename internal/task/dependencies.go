package task

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Dependencies name the tasks and the group that a task waits for before it runs (docs/lifecycle.md, "Dependencies"). A
// nil *Dependencies names nothing.
type Dependencies struct {
	Tasks []int64 `json:"tasks,omitempty"` // ids of tasks
	// Places name tasks that the same call opens: their places among the definitions of the call, from 0.
	Places []int `json:"places,omitempty"`
	// a group, which must be complete: it is closed, and all of its tasks are finished
	Group string `json:"group,omitempty"`
}

// MaxDependencies is the largest number of tasks that one task can wait for. A group counts as one.
const MaxDependencies = 10_000

func (d *Dependencies) count() int {
	switch {
	case d == nil:
		return 0
	case d.Group == "":
		return len(d.Tasks) + len(d.Places)
	}
	return len(d.Tasks) + len(d.Places) + 1
}

// DependencyBytes returns the approximate size of the names of the dependencies. A place in the call counts for more,
// because Redis replaces it by an id.
func (d *Properties) DependencyBytes() (bytes int) {
	for _, of := range []*Dependencies{d.After, d.AfterAny} {
		if of != nil {
			bytes += 8*of.count() + 32*len(of.Places)
		}
	}
	return bytes
}

// HasDependencies reports whether the task waits for anything before it may run.
func (d *Properties) HasDependencies() bool { return d.After.count()+d.AfterAny.count() > 0 }

func (d *Properties) checkDependencies() error {
	if n := d.After.count() + d.AfterAny.count(); n > MaxDependencies {
		return invalidProperty(FieldAfter,
			"the task waits for %d tasks; at most %d are possible, so wait for a group instead", n, MaxDependencies)
	}
	if err := d.After.check(FieldAfter, FieldAfterGroup, d.Group); err != nil {
		return err
	}
	return d.AfterAny.check(FieldAfterAny, FieldAfterGroupAny, d.Group)
}

func (d *Dependencies) check(tasks, group, own string) error {
	if d == nil {
		return nil
	}
	if i := slices.IndexFunc(d.Tasks, func(id int64) bool { return id < 1 }); i >= 0 {
		return invalidProperty(tasks, "%d is not the id of a task", d.Tasks[i])
	}
	if d.Group != "" && d.Group == own {
		return invalidProperty(group, "a task cannot wait for its own group, %q", own)
	}
	return checkName(group, d.Group)
}

// placeMark is the beginning of the name of a dependency on a task that the same call opens. The place of the task
// follows, from 1. The script that opens the tasks replaces the whole name with the id.
const placeMark = "#"

// text returns the names of the ids and the places. Each of them appears once.
func (d *Dependencies) text() string {
	var parts []string
	for _, id := range uniqueOf(d.Tasks) {
		parts = append(parts, strconv.FormatInt(id, 10))
	}
	for _, i := range uniqueOf(d.Places) {
		parts = append(parts, placeMark+strconv.Itoa(i+1))
	}
	return strings.Join(parts, ",")
}

func uniqueOf[T int | int64](all []T) []T { return slices.Compact(slices.Sorted(slices.Values(all))) }

// ParseIDs reads the ids in the property `after` or `after_any`. It skips everything else.
func ParseIDs(s string) (ids []int64) {
	if s == "" {
		return nil
	}
	for part := range strings.SplitSeq(s, ",") {
		if id, err := strconv.ParseInt(part, 10, 64); err == nil && id > 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

// dependencyFields returns the properties of a new task that name its dependencies.
func (d *Properties) dependencyFields() (fields []Field) {
	add := func(name, value string) {
		if value != "" {
			fields = append(fields, Field{name, value})
		}
	}
	n := 0
	for _, of := range []struct {
		*Dependencies
		tasks, group string
	}{{d.After, FieldAfter, FieldAfterGroup}, {d.AfterAny, FieldAfterAny, FieldAfterGroupAny}} {
		if of.count() == 0 {
			continue
		}
		add(of.tasks, of.text())
		add(of.group, of.Group)
		n += len(uniqueOf(of.Tasks)) + len(uniqueOf(of.Places)) + min(len(of.Group), 1)
	}
	if n > 0 {
		add(fieldLinks, strconv.Itoa(n))
	}
	return fields
}

// dependencies reads the dependencies of a task.
func (p *parser) dependencies(tasks, group string) *Dependencies {
	ids, of := ParseIDs(p.h[tasks]), p.h[group]
	if len(ids) == 0 && of == "" {
		return nil
	}
	return &Dependencies{Tasks: ids, Group: of}
}

// FirstPlace returns the place of a new task in the open list. A task with dependencies waits first.
func (d *Properties) FirstPlace() string {
	if d.HasDependencies() {
		return WaitingPlace
	}
	return d.Place()
}

// places returns the places of the tasks of the same call that the task waits for. It returns each place once.
func (d *Properties) places() []int {
	var all []int
	for _, of := range []*Dependencies{d.After, d.AfterAny} {
		if of != nil {
			all = append(all, of.Places...)
		}
	}
	return uniqueOf(all)
}

// HasPlaces reports whether the task waits for tasks that the same call opens.
func (d *Properties) HasPlaces() bool {
	return d.After != nil && len(d.After.Places) > 0 || d.AfterAny != nil && len(d.AfterAny.Places) > 0
}

// InOrder returns an order of the tasks of one call. In this order, each task comes after the tasks that it waits for.
// Of the definitions with the same unique key, the first one comes first. The error is a *[PropertyError] if there is
// no such order, or if a task waits for a place that the call does not have.
func InOrder(all []Properties) ([]int, error) {
	order := make([]int, 0, len(all))
	waits := make([]int, len(all)) // the number of tasks that must come before the task, and are not in the order yet
	dependents := make([][]int, len(all))
	opens := Openers(all)
	for i := range all {
		if opens[i] != i { // the first definition with the key comes first, and opens the task
			waits[i]++
			dependents[opens[i]] = append(dependents[opens[i]], i)
		}
		for _, j := range all[i].places() {
			if j < 0 || j >= len(all) {
				return nil, fmt.Errorf("task %d of %d: %w", i+1, len(all),
					invalidProperty(FieldAfter, "the call has no place %d; places count from 0", j))
			}
			waits[i]++
			dependents[opens[j]] = append(dependents[opens[j]], i)
		}
		if waits[i] == 0 {
			order = append(order, i)
		}
	}
	for at := 0; at < len(order); at++ {
		for _, i := range dependents[order[at]] {
			waits[i]--
			if waits[i] == 0 {
				order = append(order, i)
			}
		}
	}
	if len(order) < len(all) {
		return nil, cycleError(all, waits)
	}
	return order, nil
}

// Openers returns for each definition the place of the definition that opens its task. If several definitions have the
// same unique key, the first one opens the task.
func Openers(all []Properties) []int {
	opens, first := make([]int, len(all)), map[string]int{}
	for i := range all {
		opens[i] = i
		if key := all[i].Unique; key != "" {
			if at, known := first[key]; known {
				opens[i] = at
			} else {
				first[key] = i
			}
		}
	}
	return opens
}

// shownOfCycle is the largest number of tasks of a cycle that an error names.
const shownOfCycle = 10

// cycleError returns an error that names a cycle among the tasks that still wait for others.
func cycleError(all []Properties, waits []int) error {
	var path []int
	opens := Openers(all)
	seen := map[int]int{} // the position of each task in the path
	unordered := func(i int) bool { return waits[opens[i]] > 0 }
	for i := slices.IndexFunc(waits, func(n int) bool { return n > 0 }); ; {
		from, twice := seen[i]
		path = append(path, i)
		if twice {
			path = path[from:]
			break
		}
		seen[i] = len(path) - 1
		before := all[i].places()
		if opens[i] != i {
			before = append(before, opens[i])
		}
		i = opens[before[slices.IndexFunc(before, unordered)]]
	}
	var names []string
	for _, i := range path[:min(len(path), shownOfCycle)] {
		names = append(names, strconv.Itoa(i))
	}
	if len(path) > shownOfCycle {
		names = append(names, "…", strconv.Itoa(path[len(path)-1]))
	}
	return invalidProperty(FieldAfter, "tasks wait for each other; their places in the call are %s",
		strings.Join(names, " → "))
}

// CheckDependency checks a task that a new task will wait for. It returns a *[PropertyError] if this task does not
// exist, or must succeed but is already finished without success. The property is [FieldAfter] or [FieldAfterAny]. The
// state of a missing task is None.
func CheckDependency(property string, id int64, state State, outcome string) error {
	switch {
	case state == None:
		return invalidProperty(property, "there is no task %d", id)
	case property == FieldAfter && state.Finished() && cmp.Or(outcome, string(state)) != string(Succeeded):
		return invalidProperty(property, "task %d: %s; retry it first, or wait for its end with any outcome "+
			"(after_any)", id, cmp.Or(outcome, string(state)))
	}
	return nil
}
