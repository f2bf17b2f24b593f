package worker

import (
	"os"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/broker"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/walk"
)

// lastID returns the number of the last task that was opened.
func (w *world) lastID() int64 {
	w.Helper()
	last, err := walk.LastID(w.Context(), w.store.Conn)
	must(w, err)
	return last
}

// A round that succeeds opens the tasks of its file open.jsonl. They have the properties of its task, may wait for each other and
// for the group of the task, and can be opened in this group although it is closed.
func TestARoundOpensTasks(t *testing.T) {
	w := newWorld(t)
	w.script("p", `#!/bin/sh
if [ "$1" = root ]; then
	printf '{"input": "a", "priority": 2}\n\n{"input": "b", "after": {"places": [0]}}\n' >$TDF_DIR/open.jsonl
	printf '{"campaign": "sums", "input": "c", "after": {"group": "g"}, "max_fails": 1, "generations": 2000}' >>$TDF_DIR/open.jsonl
fi
cat $TDF_DIR/after 2>/dev/null
echo "ran $1"
`)
	root := w.open("root", func(d *task.Properties) {
		d.Group, d.Queue, d.MaxFails, d.Meta, d.Unique, d.Generations = "g", "", 3, "mine", "only root", 7
	})
	must(t, w.store.Groups.CloseGroup(t.Context(), "g"))
	worker := w.worker()
	w.runOnce(worker)
	expect.MustEqual(t, w.task(root).State, tdf.Succeeded)
	expect.MustEqual(t, w.lastID(), root+3)
	a, b, c := w.task(root+1), w.task(root+2), w.task(root+3)
	for _, child := range []*task.Task{a, b} {
		if child.Group != "g" || child.Source != handMade || child.MaxFails != 3 || child.Meta != "" || child.Unique != "" || child.Generations != 6 {
			t.Errorf("%+v", child.Properties)
		}
	}
	if a.Priority != 2 || !b.Waits() || c.Group != "sums" || c.MaxFails != 1 || c.Generations != 6 || !c.Waits() {
		t.Errorf("%+v\n%+v\n%+v", a.Properties, b.Properties, c.Properties)
	}
	s := w.newServer()
	for _, child := range []*task.Task{a, b, c} {
		eventually(t, "the task becomes claimable", func() bool {
			_, err := s.RunOnce(t.Context())
			must(t, err)
			return !w.task(child.ID).Waits()
		})
		w.runOnce(worker)
	}
	if got := w.task(c.ID).LastOutput(); strings.Count(got, "\n") != 4 || !strings.HasSuffix(got, "ran c\n") { // it gets the outputs of root, a and b
		t.Errorf("the last task printed %q", got)
	}
}

// If the tasks of a round cannot be opened, the round fails and none of them is opened.
func TestTasksThatCannotBeOpened(t *testing.T) {
	long := strings.Repeat(`{"input": "x"}`+"\n", task.MaxFollowing+1)
	for name, c := range map[string]struct {
		content string
		set     func(w *world)
		want    string
	}{
		"no JSON":           {"{\"input\": \"1\"}\n{input: 2}\n", nil, "open.jsonl, line 2: invalid character 'i'"},
		"a list":            {"[]", nil, "open.jsonl, line 1: json: cannot unmarshal array"},
		"unknown property":  {`{"state": "succeeded"}`, nil, `open.jsonl, line 1: "state": no task has this property`},
		"invalid property":  {"\n\n" + `{"timeout": -1}`, nil, "open.jsonl, line 3: timeout: -1 is"},
		"two problems":      {`{"start_after": "2031-01-01T00:00:00Z", "end_before": "2030-01-01T00:00:00Z"}`, nil, "open.jsonl, line 1: end_before"},
		"no such place":     {`{"after": {"places": [1]}}`, nil, "after"},
		"a cycle":           {`{"after": {"places": [1]}}` + "\n" + `{"after": {"places": [0]}}`, nil, "after"},
		"its own group":     {`{"after": {"group": "g"}}`, nil, "cannot wait for its own group"},
		"too many":          {long, nil, "open.jsonl, line 1001: more than 1000 tasks"},
		"too large":         {strings.Repeat(" ", task.MaxFollowingBytes+1), nil, "open.jsonl: 4194305 bytes, more than 4194304"},
		"no UTF-8":          {"{\"input\": \"\xff\"}", nil, "open.jsonl: it is not UTF-8 (byte 12)"},
		"a closed group":    {`{"campaign": "closed"}`, func(w *world) { w.closed("closed") }, `group "closed": it is closed`},
		"its decided group": {`{}`, func(w *world) { w.mark("g", "decided") }, `group "g": `},
		"max_tasks":         {`{}`, func(w *world) { must(w, w.store.ChangeSetting(w.Context(), task.SettingMaxTasks, "1")) }, "its setting max_tasks, which is 1"},
		"no generations":    {`{}`, nil, "generations"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.script("p", "#!/bin/sh\ncp \"$1\" $TDF_DIR/open.jsonl\necho out\n")
			file := w.file(c.content)
			id := w.open(file, func(d *task.Properties) {
				d.Group = "g"
				if name == "no generations" {
					d.Generations = 0
				}
			})
			if c.set != nil {
				c.set(w)
			}
			last := w.lastID()
			w.runOnce(w.workerOn(broker.WholeOf(w.connect(redistest.Shared(t))))) // the connection has not read the settings before
			got := w.task(id)
			expect.Equal(t, got.State, tdf.Failed, c.want)
			expect.Contains(t, got.LastError(), c.want)
			expect.Equal(t, got.LastOutput(), "out\n", c.want)
			expect.Equal(t, w.lastID(), last, c.want)
		})
	}
}

// closed makes a closed group with one task.
func (w *world) closed(group string) {
	w.Helper()
	w.open("member", func(d *task.Properties) { d.Group, d.StartAfter = group, 4e9 })
	must(w, w.store.Groups.CloseGroup(w.Context(), group))
}

// mark sets the mark of a group.
func (w *world) mark(group, mark string) {
	w.Helper()
	must(w, w.client().HSet(w.Context(), w.store.Keys.Groups(), group, mark).Err())
}

// file returns the path of a new file.
func (w *world) file(content string) string {
	w.Helper()
	path := w.path("input")
	must(w, os.WriteFile(path, []byte(content), 0o644))
	return path
}
