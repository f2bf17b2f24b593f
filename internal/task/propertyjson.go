package task

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// A JSONText is a text of any bytes. In JSON it is a string, or {"base64": "…"} if it is not UTF-8.
type JSONText string

type base64Text struct {
	Base64 []byte `json:"base64"`
}

// MarshalJSON returns a string or an object.
func (t JSONText) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(t)) {
		return json.Marshal(string(t))
	}
	return json.Marshal(base64Text{[]byte(t)})
}

// LoneSurrogate returns the first escape in valid JSON that is half of a character, such as \ud800, or "". Package json
// silently replaces such an escape by U+FFFD.
func LoneSurrogate(data []byte) string {
	for i := bytes.IndexByte(data, '\\'); i >= 0 && i+1 < len(data); {
		size := 2
		if data[i+1] == 'u' {
			size = 6
			first := escaped(data[i:])
			switch second := escaped(data[min(i+size, len(data)):]); {
			case utf16.DecodeRune(first, second) != unicode.ReplacementChar:
				size = 12
			case utf16.IsSurrogate(first):
				return string(data[i : i+size])
			}
		}
		next := bytes.IndexByte(data[min(i+size, len(data)):], '\\')
		if next < 0 {
			break
		}
		i += size + next
	}
	return ""
}

// escaped returns the value of the escape with which data begins, or 0.
func escaped(data []byte) rune {
	if len(data) < 6 || data[0] != '\\' || data[1] != 'u' {
		return 0
	}
	v, _ := strconv.ParseUint(string(data[2:6]), 16, 16)
	return rune(v)
}

// UnmarshalJSON reads a string or an object. Half of a character is an error.
func (t *JSONText) UnmarshalJSON(data []byte) error {
	if s, ok := plainText(data); ok {
		*t = JSONText(s)
		return nil
	}
	if half := LoneSurrogate(data); half != "" {
		return fmt.Errorf("%s is half of a character", half)
	}
	if len(data) == 0 || data[0] != '{' {
		return json.Unmarshal(data, (*string)(t))
	}
	var b base64Text
	err := json.Unmarshal(data, &b)
	*t = JSONText(b.Base64)
	return err
}

// plainText returns the text of a JSON string that has no escapes, which json.Unmarshal would read twice.
func plainText(data []byte) (string, bool) {
	last := len(data) - 1
	if last < 1 || data[0] != '"' || data[last] != '"' {
		return "", false
	}
	text := data[1:last]
	special := func(c byte) bool { return c < ' ' || c == '"' || c == '\\' }
	return string(text), !slices.ContainsFunc(text, special) && utf8.Valid(text)
}

// Value returns the value of the property for JSON: a text, a number, a list of texts, or nil if there is none. Times
// are RFC 3339 texts, and spans are numbers of seconds. A time or span without a limit is "inf".
func (p *Property) Value(d *Properties) any { return p.value(d) }

// setJSON stores a value from JSON. If it is invalid, setJSON returns a *[PropertyError].
func (p *Property) setJSON(d *Properties, data []byte) error {
	if p.readJSON(d, data) {
		err := p.check(d)
		if invalid := (*PropertyError)(nil); errors.As(err, &invalid) {
			invalid.Property = p.JSON // the caller knows this name
		}
		return err
	}
	want := p.Want
	if p.Unit == UnitTime {
		want = "an RFC 3339 time such as 2030-01-31T12:00:00Z, or inf"
	}
	return invalidProperty(p.JSON, "%s is not %s", shorten(string(data)), want)
}

// MarshalJSON returns an object with the fields of the definition that are set, in the form that UnmarshalJSON reads.
func (d Definition) MarshalJSON() ([]byte, error) {
	members := memberOf(func(p *Property, scratch *Properties) bool { return p.define(scratch, &d) })
	for name, of := range d.dependencies() {
		if *of != nil {
			members[name] = *of
		}
	}
	return json.Marshal(members)
}

// UnmarshalJSON reads an object whose members have the names of properties; the name of the group is campaign. A time
// is an RFC 3339 text, and a span a number of seconds; "inf" means no limit (docs/tdf.md, "JSON"). For an invalid value
// or an unknown property, the error is a *[PropertyError]. A property that is null is not set.
func (d *Definition) UnmarshalJSON(data []byte) error {
	return readMembers(data, func(p *Property, scratch *Properties) error {
		p.defined(scratch, d)
		return nil
	}, d.dependencies())
}

func (d *Definition) dependencies() map[string]**Dependencies {
	return map[string]**Dependencies{FieldAfter: &d.After, FieldAfterAny: &d.AfterAny}
}

// MarshalJSON returns an object with the new values, in the form of a [Definition].
func (c Changes) MarshalJSON() ([]byte, error) {
	return json.Marshal(memberOf(func(p *Property, scratch *Properties) bool {
		return p.change != nil && p.change(scratch, &c)
	}))
}

// UnmarshalJSON reads new values, as [Definition.UnmarshalJSON] does. A property that cannot change is an error.
func (c *Changes) UnmarshalJSON(data []byte) error {
	return readMembers(data, func(p *Property, scratch *Properties) error {
		if p.changed == nil {
			return invalidProperty(p.JSON, "cannot change")
		}
		p.changed(scratch, c)
		return nil
	}, nil)
}

// memberOf returns the members of the properties that the function store stores.
func memberOf(store func(*Property, *Properties) bool) map[string]any {
	members, scratch := map[string]any{}, usual
	for i := range PropertyTable {
		if p := &PropertyTable[i]; store(p, &scratch) {
			members[p.JSON] = p.value(&scratch)
		}
	}
	return members
}

// propertyInJSON finds a property by its name in JSON.
var propertyInJSON = sync.OnceValue(func() map[string]*Property {
	all := map[string]*Property{}
	for i := range PropertyTable {
		if p := &PropertyTable[i]; p.JSON != "" {
			all[p.JSON] = p
		}
	}
	return all
})

// readMembers reads an object. It passes each property with its value to the function take.
func readMembers(data []byte, take func(*Property, *Properties) error, others map[string]**Dependencies) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if string(members[name]) == "null" {
			continue
		}
		if of := others[name]; of != nil {
			if err := json.Unmarshal(members[name], of); err != nil {
				return invalidProperty(name, `%s is not an object such as {"tasks": [1, 2]}, with tasks, places or group`,
					shorten(string(members[name])))
			}
			continue
		}
		p := propertyInJSON()[name]
		if p == nil {
			return invalidProperty(fmt.Sprintf("%.100q", name), "no task has this property")
		}
		scratch := usual
		if err := p.setJSON(&scratch, members[name]); err != nil {
			return err
		}
		if err := take(p, &scratch); err != nil {
			return err
		}
	}
	return nil
}
