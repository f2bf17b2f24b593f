package admin

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-framework/tdf/internal/managing"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
)

// Shards are namespaces that work as one (docs/shards.md). There may be only one. If there are several, each task that
// they return names its namespace.
type Shards struct{ all []shard }

type shard struct {
	namespace string
	manager   *manager.Manager
	admin     *Admin
}

// NewShards returns the namespaces of managers as one. There must be at least one manager.
func NewShards(all ...*manager.Manager) *Shards {
	s := &Shards{}
	for _, m := range all {
		s.all = append(s.all, shard{managing.Of(m).Config.Namespace, m, New(m)})
	}
	return s
}

// As returns the same namespaces with managers that write another name into the logs of tasks.
func (s *Shards) As(name string) *Shards {
	var all []*manager.Manager
	for _, of := range s.all {
		all = append(all, of.manager.As(name))
	}
	return NewShards(all...)
}

// Several reports whether there is more than one namespace.
func (s *Shards) Several() bool { return len(s.all) > 1 }

// Namespaces returns the names of all namespaces.
func (s *Shards) Namespaces() (all []string) {
	for _, of := range s.all {
		all = append(all, of.namespace)
	}
	return all
}

// In returns the manager and the Admin of a namespace. If there is only one namespace, its name may be "".
func (s *Shards) In(namespace string) (*manager.Manager, *Admin, error) {
	for _, of := range s.all {
		if of.namespace == namespace || namespace == "" && !s.Several() {
			return of.manager, of.admin, nil
		}
	}
	return nil, nil, &NamespaceError{namespace, s.Namespaces()}
}

// A NamespaceError is the error for a task of none of the [Shards].
type NamespaceError struct {
	Namespace string
	All       []string
}

func (e *NamespaceError) Error() string {
	if e.Namespace == "" {
		return "name the task as NAMESPACE/ID, with one of the namespaces " + strings.Join(e.All, ", ")
	}
	return fmt.Sprintf("no namespace %q; want one of %s", e.Namespace, strings.Join(e.All, ", "))
}

// Code returns the error's code (docs/manager.md, "Codes of errors").
func (*NamespaceError) Code() task.Code { return task.CodeInvalid }

// Now returns the time of Redis's clock, in the first namespace.
func (s *Shards) Now(ctx context.Context) (time.Time, error) { return s.all[0].manager.Now(ctx) }

// mark names the namespace in the tasks of several.
func (s *Shards) mark(of shard, tasks ...*manager.Task) {
	for _, t := range tasks {
		if s.Several() {
			t.Namespace = of.namespace
		}
	}
}

// fault names the namespace in an error about one of several.
func (s *Shards) fault(of shard, err error) error {
	if err == nil || !s.Several() {
		return err
	}
	return fmt.Errorf("namespace %s: %w", of.namespace, err)
}

// Recent does the same as [Admin.Recent], for a task of a namespace.
func (s *Shards) Recent(ctx context.Context, namespace string, id int64, owner string) (*manager.Task, error) {
	_, a, err := s.In(namespace)
	if err != nil {
		return nil, err
	}
	t, err := a.Recent(ctx, id, owner)
	if err == nil && s.Several() {
		t.Namespace = namespace
	}
	return t, err
}

// Page does the same as [manager.Manager.Page], in one namespace after the other.
func (s *Shards) Page(ctx context.Context, all Selection, cursor string, limit int) (page manager.Page, err error) {
	i, within, err := s.cursor(cursor)
	if err != nil {
		return page, err
	}
	began := time.Now()
	for ; i < len(all); i, within = i+1, "" {
		if all[i] == nil {
			continue
		}
		left := limit - len(page.Tasks)
		if limit > 0 && left == 0 || time.Since(began) > pageTime {
			page.Next = s.cursorAt(i, "")
			return page, nil
		}
		of := s.all[i]
		part, err := of.manager.Page(ctx, *all[i], within, left)
		s.mark(of, part.Tasks...)
		page.Tasks, page.Looked = append(page.Tasks, part.Tasks...), page.Looked+part.Looked
		if err != nil {
			return page, s.fault(of, err)
		}
		if part.Next != "" {
			page.Next = s.cursorAt(i, part.Next)
			return page, nil
		}
	}
	return page, nil
}

// pageTime is after how long a page begins with no further namespace.
const pageTime = 500 * time.Millisecond

// cursorAt returns the cursor for a place in a namespace. With one namespace, it is that of the namespace.
func (s *Shards) cursorAt(i int, within string) string {
	if !s.Several() {
		return within
	}
	return strconv.Itoa(i) + "." + within
}

// cursor is the reverse of cursorAt.
func (s *Shards) cursor(text string) (i int, within string, err error) {
	if !s.Several() || text == "" {
		return 0, text, nil
	}
	number, within, found := strings.Cut(text, ".")
	n, err := strconv.ParseUint(number, 10, 16)
	if !found || err != nil || int(n) >= len(s.all) {
		return 0, "", &manager.QueryError{Problem: fmt.Sprintf("invalid cursor %.100q", text)}
	}
	return int(n), within, nil
}

// List does the same as [manager.Manager.List], in one namespace after the other.
func (s *Shards) List(ctx context.Context, all Selection) iter.Seq2[*manager.Task, error] {
	return func(yield func(*manager.Task, error) bool) {
		for i, q := range all {
			if q == nil {
				continue
			}
			for t, err := range s.all[i].manager.List(ctx, *q) {
				if err == nil {
					s.mark(s.all[i], t)
				}
				if !yield(t, s.fault(s.all[i], err)) || err != nil {
					return
				}
			}
		}
	}
}

// Watch does the same as [Admin.Watch]. It adds up the workers of all namespaces.
func (s *Shards) Watch(group string) *Watch {
	w := &Watch{group: group}
	for _, of := range s.all {
		part := of.admin.sight(group)
		if s.Several() {
			part.prefix = "namespace " + of.namespace + ": "
		}
		w.sights = append(w.sights, part)
	}
	return w
}

// Failures does the same as [Admin.Failures], in one namespace after the other. A page has failures of one of them.
func (s *Shards) Failures(ctx context.Context, all Selection, cursor string) (page Failures, err error) {
	i, within, err := s.cursor(cursor)
	if err != nil {
		return page, err
	}
	began := time.Now()
	for ; i < len(all); i, within = i+1, "" {
		if all[i] == nil {
			continue
		}
		if len(page.Groups) > 0 || time.Since(began) > pageTime {
			page.Next = s.cursorAt(i, "")
			return page, nil
		}
		found, err := s.all[i].admin.Failures(ctx, *all[i], within)
		if err != nil {
			return page, s.fault(s.all[i], err)
		}
		looked, of := page.Looked+found.Looked, page.Of+found.Of
		page, page.Looked, page.Of = found, looked, of
		for k := range page.Groups {
			if s.Several() {
				page.Groups[k].Example.Namespace = s.all[i].namespace
			}
		}
		if page.Next != "" {
			page.Next = s.cursorAt(i, page.Next)
			return page, nil
		}
	}
	return page, nil
}

// Do does the same as [manager.Manager.Do], in the namespace of each Ref.
func (s *Shards) Do(ctx context.Context, action manager.Action, refs ...manager.Ref) (sum manager.Result, err error) {
	for _, of := range s.all {
		own := s.own(of, refs)
		if len(own) == 0 {
			continue
		}
		done, err := of.manager.Do(ctx, action, own...)
		sum.Done += done.Done
		for _, skipped := range done.Skipped {
			sum.Skipped = append(sum.Skipped, s.fault(of, skipped))
		}
		if err != nil {
			return sum, s.fault(of, err)
		}
	}
	return sum, nil
}

// Dependents does the same as [manager.Manager.Dependents]. Tasks wait only for tasks of their own namespace.
func (s *Shards) Dependents(ctx context.Context, refs ...manager.Ref) (all []manager.Ref, err error) {
	for _, of := range s.all {
		own := s.own(of, refs)
		if len(own) == 0 {
			continue
		}
		found, err := of.manager.Dependents(ctx, own...)
		if err != nil {
			return all, s.fault(of, err)
		}
		for _, r := range found {
			if s.Several() {
				r.Namespace = of.namespace
			}
			all = append(all, r)
		}
	}
	return all, nil
}

// own returns the Refs to tasks of a namespace.
func (s *Shards) own(of shard, refs []manager.Ref) []manager.Ref {
	if !s.Several() {
		return refs
	}
	return slices.DeleteFunc(slices.Clone(refs), func(r manager.Ref) bool { return r.Namespace != of.namespace })
}

// Each calls a function for each namespace, and returns the errors of all.
func (s *Shards) Each(do func(*manager.Manager) error) error {
	var all []error
	for _, of := range s.all {
		all = append(all, s.fault(of, do(of.manager)))
	}
	return errors.Join(all...)
}
