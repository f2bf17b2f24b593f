package task

import (
	"encoding/json"
	"fmt"
)

// A Kind is the name of a program whose tasks have an input of type In and a result of type Out, both as JSON
// (docs/manager.md, "Typed tasks"). The manager and the worker share it:
//
//	const Lookup = tdf.Kind[Host, []string]("lookup")
type Kind[In, Out any] string

// A Validator is an input that can be invalid. [Kind.Define] and the worker refuse an invalid input.
type Validator interface{ Validate() error }

// Define returns the definition of a task with this input. The caller may set its other properties.
func (k Kind[In, Out]) Define(in In) (Definition, error) {
	text, err := json.Marshal(in)
	if err == nil {
		err = validate(in)
	}
	if err != nil {
		return Definition{}, NewError(CodeInvalid, fmt.Sprintf("input of %s: %v", k, err))
	}
	return Definition{Program: string(k), Input: string(text)}, nil
}

// Input reads the input of a task.
func (k Kind[In, Out]) Input(text string) (in In, err error) {
	if err := json.Unmarshal([]byte(text), &in); err != nil {
		return in, fmt.Errorf("input of %s: %w", k, err)
	}
	if err := validate(in); err != nil {
		return in, fmt.Errorf("input of %s: %w", k, err)
	}
	return in, nil
}

// Result reads the result of a task that succeeded.
func (k Kind[In, Out]) Result(text string) (out Out, err error) {
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		return out, fmt.Errorf("result of %s: %w", k, err)
	}
	return out, nil
}

func validate(v any) error {
	if v, ok := v.(Validator); ok {
		return v.Validate()
	}
	return nil
}
