package task

import (
	"slices"

	"github.com/tdf-framework/tdf/internal/class"
)

// Requirement returns what a worker must offer to claim the task. Only a worker with a handler can run a program
// without a source. The requirement has the memory and the min_time rounded up.
func (d *Properties) Requirement() class.Requirement {
	r := class.Requirement{
		Queue: d.Queue, Tags: slices.Compact(slices.Sorted(slices.Values(d.Tags))), MinTime: d.MinTime,
	}
	if r.Queue == "" {
		r.Queue = class.DefaultQueue
	}
	if d.ByGroup {
		r.Group = d.Group
	}
	if d.Resources != "" {
		r.Resources, _ = class.ParseRequest(d.Resources) // nil for an invalid text, which Validate refuses
	}
	if d.Source == "" {
		r.Handler = d.Program
	}
	return r.Rounded()
}

// Request returns what a round of the task takes from a worker that offers resources.
func (d *Properties) Request() class.Request {
	r, _ := class.ParseRequest(d.Resources) // Validate refuses an invalid text
	if r == nil {
		return class.PlainRequest
	}
	return r
}

// canonicalRequest returns a request in the form of class.Request.String.
func canonicalRequest(text string) (string, bool) {
	r, err := class.ParseRequest(text)
	return r.String(), err == nil
}

func checkRequest(name, text string) error {
	_, err := class.ParseRequest(text)
	if err != nil {
		return invalidProperty(name, "%v", err)
	}
	return nil
}
