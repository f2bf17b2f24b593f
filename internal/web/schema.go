package web

import (
	"encoding"
	"encoding/json"
	"maps"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
)

// A view is a value of package manager or admin in an answer. It has the JSON of docs/tdf.md, "JSON", and the schema
// that describes this JSON.
type view[T any] struct{ value T }

// taskView is a task in an answer.
type taskView struct{ value *manager.Task }

func (v view[T]) MarshalJSON() ([]byte, error)  { return json.Marshal(v.value) }
func (v taskView) MarshalJSON() ([]byte, error) { return v.value.MarshalJSON() }

// viewsOf returns the views of values. An empty list is [] in JSON, and not null.
func viewsOf[T any](all []T) []view[T] {
	views := make([]view[T], len(all))
	for i := range all {
		views[i].value = all[i]
	}
	return views
}

// Schema describes the value.
func (v view[T]) Schema(huma.Registry) *huma.Schema { return schemaOf(reflect.TypeFor[T](), false) }

// Schema describes a task: its own fields, those of its last run, and its properties.
func (taskView) Schema(huma.Registry) *huma.Schema {
	s := schemaOf(reflect.TypeFor[manager.Task](), false)
	s.Required = []string{"id", "state", "round"}
	for name, of := range schemaOf(reflect.TypeFor[manager.Round](), false).Properties {
		if s.Properties[name] == nil {
			s.Properties[name] = of
		}
	}
	maps.Copy(s.Properties, propertySchemas(func(*task.Property) bool { return true }))
	return s
}

// Schema describes a definition, a list of definitions, and JSON Lines.
func (definitions) Schema(huma.Registry) *huma.Schema {
	one := &huma.Schema{Type: huma.TypeObject, Properties: propertySchemas(func(*task.Property) bool {
		return true
	}), Required: []string{"program"}}
	for _, name := range []string{task.FieldAfter, task.FieldAfterAny} {
		one.Properties[name] = schemaOf(reflect.TypeFor[manager.Dependencies](), false)
	}
	one.Properties["fail_on"].Description += "; without it, the one of the server's [task_defaults], which is exit " +
		"unless its configuration says otherwise"
	one.AdditionalProperties = false
	return &huma.Schema{OneOf: []*huma.Schema{one, {Type: huma.TypeArray, Items: one}}}
}

// Schema describes the properties that can change.
func (changes) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Type: huma.TypeObject, Properties: propertySchemas((*task.Property).CanChange),
		AdditionalProperties: false,
	}
}

// propertySchemas returns the schemas of properties by their names in JSON.
func propertySchemas(which func(*task.Property) bool) map[string]*huma.Schema {
	all := map[string]*huma.Schema{}
	usual := task.Defaults("", "", "")
	for i := range task.PropertyTable {
		p := &task.PropertyTable[i]
		if !which(p) {
			continue
		}
		s := &huma.Schema{Type: huma.TypeString, Description: p.Want}
		switch value := p.Value(&usual); {
		case p.Unit == task.UnitSpan:
			s = &huma.Schema{Description: p.Want, OneOf: []*huma.Schema{
				{Type: huma.TypeNumber},
				{Type: huma.TypeString, Enum: []any{"inf"}},
			}}
		case p.Unit == task.UnitTime || value == nil:
		default:
			s = schemaOf(reflect.TypeOf(value), false)
			s.Description = p.Want
		}
		all[p.JSON] = s
	}
	return all
}

// schemaOf describes the JSON that package jsonview writes for a type. The flag unix is that of the tag as:"unix".
func schemaOf(t reflect.Type, unix bool) *huma.Schema {
	switch {
	case t == reflect.TypeFor[time.Time]() && !unix:
		return &huma.Schema{Type: huma.TypeString, Format: "date-time"}
	case t == reflect.TypeFor[time.Time](), t == reflect.TypeFor[time.Duration]():
		return &huma.Schema{Type: huma.TypeNumber}
	case t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return &huma.Schema{Type: huma.TypeString}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(t.Elem(), unix)
	case reflect.String:
		return &huma.Schema{Type: huma.TypeString}
	case reflect.Bool:
		return &huma.Schema{Type: huma.TypeBoolean}
	case reflect.Int, reflect.Int64:
		return &huma.Schema{Type: huma.TypeInteger, Format: "int64"}
	case reflect.Float64:
		return &huma.Schema{Type: huma.TypeNumber}
	case reflect.Slice:
		return &huma.Schema{Type: huma.TypeArray, Items: schemaOf(t.Elem(), unix)}
	case reflect.Map:
		return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: schemaOf(t.Elem(), unix)}
	case reflect.Struct:
		return objectOf(t)
	}
	return &huma.Schema{}
}

func objectOf(t reflect.Type) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeObject, Properties: map[string]*huma.Schema{}}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			inner := objectOf(f.Type)
			maps.Copy(s.Properties, inner.Properties)
			s.Required = append(s.Required, inner.Required...)
		case name != "" && name != "-":
			s.Properties[name] = schemaOf(f.Type, f.Tag.Get("as") == "unix")
			if !strings.Contains(options, "omit") && f.Tag.Get("only") == "" {
				s.Required = append(s.Required, name)
			}
		}
	}
	return s
}
