// Package jsonview writes the types of packages manager and admin as the JSON that the command tdf prints (docs/tdf.md,
// "JSON").
//
// It writes these values in another way than encoding/json does:
//   - A time.Time is an RFC 3339 time in UTC with six decimals. With the tag as:"unix", it is a number of seconds since
//     1970.
//   - A time.Duration is a number of seconds.
//   - A string that is not UTF-8 is {"base64": "…"}.
package jsonview

import (
	"bytes"
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// An Object is a JSON object whose members keep their order.
type Object []Member

// A Member is a name with a value. The value is any value that package encoding/json can write.
type Member struct {
	Name  string
	Value any
}

// Of returns the fields of a struct that have a json tag. It includes the fields of embedded structs. omitempty and
// omitzero work as in encoding/json. A field with the tag only:"x" is included only if parts contains "x".
func Of(v any, parts ...string) Object {
	var o Object
	o.addStruct(reflect.Indirect(reflect.ValueOf(v)), parts)
	return o
}

// Marshal returns the JSON of a struct.
func Marshal(v any) ([]byte, error) { return Of(v).MarshalJSON() }

func (o *Object) addStruct(v reflect.Value, parts []string) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		value := v.Field(i)
		if field.Anonymous && name == "" {
			if value = reflect.Indirect(value); value.IsValid() {
				o.addStruct(value, parts)
			}
			continue
		}
		only := field.Tag.Get("only")
		if name == "" || name == "-" || only != "" && !slices.Contains(parts, only) {
			continue
		}
		if strings.Contains(options, "omit") && isEmpty(value) {
			continue
		}
		o.Set(name, convert(value, field.Tag.Get("as") == "unix"))
	}
}

func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Map, reflect.Slice:
		return v.Len() == 0
	}
	if t, ok := v.Interface().(time.Time); ok {
		return t.IsZero()
	}
	return v.IsZero()
}

// convert replaces a value by one that encoding/json writes in the form that this package documents.
func convert(v reflect.Value, unix bool) any {
	switch value := v.Interface().(type) {
	case time.Time:
		return timeOf(value, unix)
	case time.Duration:
		return value.Seconds()
	case json.Marshaler:
		return value
	}
	switch v.Kind() {
	case reflect.String:
		return text(v.String())
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return convert(v.Elem(), unix)
	case reflect.Struct:
		var o Object
		o.addStruct(v, nil)
		return o
	case reflect.Map:
		return convertMap(v, unix)
	case reflect.Slice:
		return convertSlice(v, unix)
	}
	return v.Interface()
}

func convertMap(v reflect.Value, unix bool) any {
	all := make(map[string]any, v.Len())
	for k, element := range v.Seq2() {
		all[k.String()] = convert(element, unix)
	}
	return all
}

func convertSlice(v reflect.Value, unix bool) any {
	all := make([]any, v.Len())
	for i := range all {
		all[i] = convert(v.Index(i), unix)
	}
	return all
}

func timeOf(t time.Time, unix bool) any {
	switch {
	case unix && t.IsZero():
		return 0
	case unix:
		return float64(t.UnixMicro()) / 1e6
	}
	return t.UTC().Format("2006-01-02T15:04:05.000000Z07:00")
}

func text(s string) any {
	if utf8.ValidString(s) {
		return s
	}
	return struct {
		Base64 []byte `json:"base64"`
	}{[]byte(s)}
}

// Set sets the value of a member. If the object has no member of this name, Set appends it. If the value is a string
// that is not UTF-8, Set stores an object with the member base64 instead.
func (o *Object) Set(name string, value any) {
	if s, ok := value.(string); ok {
		value = text(s)
	}
	for i := range *o {
		if (*o)[i].Name == name {
			(*o)[i].Value = value
			return
		}
	}
	*o = append(*o, Member{name, value})
}

// Merge appends the members of another object. It skips members whose names this object already has.
func (o *Object) Merge(other Object) {
	for _, m := range other {
		if !o.has(m.Name) {
			*o = append(*o, m)
		}
	}
}

func (o *Object) has(name string) bool {
	return slices.ContainsFunc(*o, func(m Member) bool { return m.Name == name })
}

// Delete removes the members with the given names.
func (o *Object) Delete(names ...string) {
	*o = slices.DeleteFunc(*o, func(m Member) bool { return slices.Contains(names, m.Name) })
}

// Order sorts the members in the order of the given names. Members with other names come last.
func (o Object) Order(names []string) {
	place := func(m Member) int {
		if i := slices.Index(names, m.Name); i >= 0 {
			return i
		}
		return len(names)
	}
	slices.SortStableFunc(o, func(a, b Member) int { return cmp.Compare(place(a), place(b)) })
}

// MarshalJSON writes the members in their order. It does not escape <, > and &.
func (o Object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := encoder.Encode(m.Name); err != nil {
			return nil, err
		}
		b.Truncate(b.Len() - 1) // remove the newline that Encode has added
		b.WriteByte(':')
		if err := encoder.Encode(m.Value); err != nil {
			return nil, err
		}
		b.Truncate(b.Len() - 1)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// SetTime sets a member to a time. If the time is zero, it does nothing.
func (o *Object) SetTime(name string, t time.Time) {
	if !t.IsZero() {
		o.Set(name, timeOf(t, false))
	}
}

// ParseObject returns the text as JSON, and reports whether the text is a JSON object.
func ParseObject(text string) (json.RawMessage, bool) {
	object := strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "{")
	return json.RawMessage(text), object && utf8.ValidString(text) && json.Valid([]byte(text))
}
