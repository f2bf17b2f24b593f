package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"reflect"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
)

// A Need is the right that a route needs.
type Need struct {
	Name string // completes the sentence "the role may not …"
	Met  func(access.Rights) bool
}

// The needs of routes.
var (
	ToSee     = Need{"see tasks", func(r access.Rights) bool { return r.See != access.None }}
	ToChange  = Need{"change tasks", func(r access.Rights) bool { return r.Change != access.None }}
	ToOpen    = Need{"open tasks", func(r access.Rights) bool { return r.Open }}
	ToInspect = Need{"inspect the namespace", func(r access.Rights) bool { return r.Inspect }}
	ToWork    = Need{"work on tasks", func(r access.Rights) bool { return r.Work }}
	ToRead    = Need{"read blobs", func(r access.Rights) bool { return r.Work || r.See != access.None }}
	ToStore   = Need{"store blobs", func(r access.Rights) bool { return r.Work || r.Open }}
	ToOperate = Need{"operate the namespace", func(r access.Rights) bool { return r.Operate }}
)

// An Interface is the interface of another task system, below a prefix of paths.
type Interface struct {
	Prefix string // "/", or a clean path such as "/ts", as the configuration checks it
	Routes []Route
}

// A Mux is an [http.ServeMux] that knows its patterns. The zero Mux is ready.
type Mux struct {
	http.ServeMux
	Patterns []string
}

// HandleFunc adds a pattern.
func (m *Mux) HandleFunc(pattern string, serve func(http.ResponseWriter, *http.Request)) {
	m.Patterns = append(m.Patterns, pattern)
	m.ServeMux.HandleFunc(pattern, serve)
}

// A Route is a method and a path of an interface.
type Route struct {
	Method string
	Path   string // after the prefix, with parameters as in [http.ServeMux]: "/tasks/v1/{id}"
	Need   Need
	Bulk   bool // the call may take ten times as long, and its body may have 64 MiB instead of 1 MiB
	// the types of bodies that the route reads; nil means JSON. A body without a Content-Type has the first of them.
	Types []string

	// Do makes the call. Its context ends with the time of the call. An error becomes problem details, as in the API,
	// but the status of an invalid call is 400, as in all of these systems.
	Do func(context.Context, *Call) (*Answer, error)
}

// A Call is a call of a route, which has passed the gate. Its Request has the path values, the query and the header;
// the body has been read.
type Call struct {
	*http.Request
	Body  []byte // nil if the method has none
	ID    string // correlation id; the answer has it, too
	Token *access.Token

	// Manager opens and changes tasks, and writes the name of the token into their logs. It knows no owners: what the
	// token may see and change is the interface's business.
	Manager *manager.Manager

	// Undo takes back what the call has done. Web calls it if it is not nil, and the client cannot have got the answer.
	Undo func()
}

// Read reads the JSON of the body. It ignores members that the type does not have. The error is invalid, or one of
// [CheckJSON].
func (c *Call) Read(v any) error { return c.ReadText("the body", c.Body, v) }

// ReadText does the same as Read with a part of the body.
func (c *Call) ReadText(name string, text []byte, v any) error {
	if err := CheckJSON(c.Context(), text, reflect.TypeOf(v)); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(v); err != nil {
		return Invalid(name + ": " + err.Error())
	}
	if _, err := d.Token(); err != io.EOF {
		return Invalid(name + " has more than one JSON value")
	}
	return nil
}

// Invalid returns the error of a call that is wrong, whatever the namespace contains.
func Invalid(problem string) error { return task.NewError(task.CodeInvalid, problem) }

// An Answer is the answer to a call that succeeded.
type Answer struct {
	Status int
	Type   string // of the body; "" for an answer without a body
	Body   []byte
}

// Encoder returns an encoder that writes a line of JSON for each value.
func Encoder(w io.Writer) *json.Encoder {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e
}

// JSON returns an answer with a value.
func JSON(status int, v any) (*Answer, error) {
	var b bytes.Buffer
	if err := Encoder(&b).Encode(v); err != nil {
		return nil, err
	}
	return &Answer{status, "application/json", b.Bytes()}, nil
}

// Empty returns an answer without a body.
func Empty(status int) *Answer { return &Answer{Status: status} }
