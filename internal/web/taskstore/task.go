package taskstore

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"unicode/utf8"

	"github.com/tdf-framework/tdf/internal/task"
)

// Program is the program, and the queue, of the tasks of this interface in TDF.
const Program = "taskstore"

// A version is a version of a task, as clients see it.
type version struct {
	ID     int64  `json:"id"`
	Group  string `json:"group"`
	Data   string `json:"data"`
	Millis int64  `json:"timespec"` // the time from which the task is available, in milliseconds since 1970
	Nanos  int64  `json:"duration"` // the same in nanoseconds, as the client of TaskStore reads and writes it
	Owner  int32  `json:"ownerid"`
}

// A change is a version that a client wants.
type change struct {
	ID     int64  `json:"id"`
	Group  string `json:"group"`
	Data   string `json:"data"`
	Millis *int64 `json:"timespec"`
	Nanos  int64  `json:"duration"`
}

// available returns the time from which the new version is available. Times of 0 and below count from now.
func (c *change) available(now task.Time) task.Time {
	spec, unit := float64(c.Nanos), 1e-9
	if c.Millis != nil {
		spec, unit = float64(*c.Millis), 1e-3
	}
	if spec > 0 {
		return task.Time(spec * unit)
	}
	return now.Add(task.Seconds(-spec * unit))
}

// meta is what a task's property meta says about its owner.
type meta struct {
	Owner int32 `json:"owner"`
}

// properties returns the task of TDF for a version.
func properties(group, data string, available task.Time, owner int32) task.Properties {
	d := task.Defaults(Program, "", data)
	d.Queue, d.Group, d.ByGroup, d.StartAfter = Program, group, true, available
	if !utf8.ValidString(data) || d.Validate() != nil { // the data are no arguments of a program
		d.Input, d.InputEncoding = base64.StdEncoding.EncodeToString([]byte(data)), task.InputBase64
	}
	if owner != 0 {
		text, _ := json.Marshal(meta{owner})
		d.Meta = string(text)
	}
	return d
}

// placeOf returns the place of the open tasks of a group.
func placeOf(group string) string {
	d := properties(group, "", 0, 0)
	return d.Place()
}

// isVersion reports whether a task of TDF is a version of this interface that exists: a worker of TDF may have claimed
// it, or a user may have cancelled it.
func isVersion(t *task.Task) bool {
	return t != nil && t.State == task.Open && t.Program == Program && t.Queue == Program && t.Source == ""
}

func ownerOf(t *task.Task) int32 {
	var m meta
	if json.Unmarshal([]byte(t.Meta), &m) != nil {
		return 0
	}
	return m.Owner
}

func versionOf(id int64, t *task.Properties, owner int32) version {
	data := t.Input
	if _, decoded, err := t.Arguments(); err == nil && decoded != nil {
		data = string(decoded)
	}
	nanos := int64(math.Round(float64(t.StartAfter)*1e6)) * 1000
	return version{ID: id, Group: t.Group, Data: data, Millis: nanos / 1e6, Nanos: nanos, Owner: owner}
}
