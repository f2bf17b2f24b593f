package manager

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/jsonview"
	"github.com/tdf-framework/tdf/internal/task"
)

// MarshalJSON writes the fields that docs/tdf.md lists in "JSON". For a summary, it writes only some of these fields.
func (t Task) MarshalJSON() ([]byte, error) { return t.JSON(nil).MarshalJSON() }

// UnmarshalJSON returns an error, because a Task can only be read from Redis. To read the JSON of a task, use a type
// with the fields that you need.
func (*Task) UnmarshalJSON([]byte) error {
	return errors.New("a manager.Task cannot be read from JSON; use a type of your own with the fields that you need")
}

// memberOrder lists the names of the members of the JSON object, in their order. It includes members that only tdf show
// adds.
var memberOrder = strings.Fields(`
	id namespace campaign program queue priority tags limit_key by_group state outcome waits waits_for_limit round entered
	claimable_from opened input input_encoding input_replaced parameters meta run
	worker started ended exit seconds cpu_seconds max_rss output_bytes error_bytes files program_sha256 progress follow_ups
	outputs_removed result output output_whole error error_whole tail
	after after_any
	source start_after end_before claim_before timeout fail_on max_fails max_timeouts max_losses max_attempts backoff
	backoff_factor backoff_max keep_finished keep_archived keep_outputs unique unique_until
	fails timeouts losses releases reopens revision not_on checkpoint
	updates host worker_alive pid last_output silent_seconds lease_until deadline rounds log`)

// JSON returns the members that MarshalJSON writes, with the members of others among them.
func (t *Task) JSON(others jsonview.Object) jsonview.Object {
	o := t.members()
	o.Merge(others)
	o.Order(order)
	return o
}

// order is memberOrder with the properties that it does not name, after the other properties.
var order = func() []string {
	all := slices.Clone(memberOrder)
	for _, p := range task.PropertyTable {
		if !slices.Contains(all, p.JSON) {
			all = slices.Insert(all, slices.Index(all, "fails"), p.JSON)
		}
	}
	return all
}()

func (t *Task) members() jsonview.Object {
	running := t.whole && t.State == tdf.Running
	parts := []string{"summary"}
	if t.whole {
		parts = append(parts, "whole")
	}
	if running {
		parts = append(parts, "running")
	}
	o := jsonview.Of(t, parts...)
	t.addProperties(&o)
	if parameters, ok := jsonview.ParseObject(t.Meta); ok {
		o.Delete("meta")
		o.Set("parameters", parameters)
	}
	if t.ClaimableFrom.Equal(task.Never.Std()) {
		o.Delete("claimable_from")
	}
	if t.Deadline.Equal(task.Never.Std()) {
		o.Delete("deadline")
	}
	if last := t.RoundNumber(t.Stored().LastRun()); last != nil {
		of := last.object()
		of.Delete("round", "entered")
		of.Delete(t.hidden...)
		if last.Worker != "" {
			o.Set("run", last.Number)
		} else { // no round ran, and Error contains the server's reason
			of.Delete("started", "ended", "output_bytes", "error_bytes")
		}
		o.Merge(of)
	}
	if current := t.RoundNumber(t.Round); running && current != nil {
		o.Merge(current.running())
	}
	return o
}

// addProperties adds the properties that the JSON shows.
func (t *Task) addProperties(o *jsonview.Object) {
	properties := t.Definition.Properties(task.Defaults("", "", ""))
	properties.Source = task.HideCredentials(t.Source)
	for i := range task.PropertyTable {
		if p := &task.PropertyTable[i]; (t.whole || p.InLists) && p.Shown(&properties) {
			o.Set(p.JSON, p.Value(&properties))
		}
	}
	if t.whole && t.After != nil {
		o.Set(task.FieldAfter, t.After)
	}
	if t.whole && t.AfterAny != nil {
		o.Set(task.FieldAfterAny, t.AfterAny)
	}
}

// MarshalJSON writes the fields of a round, as in the JSON of a whole task.
func (r Round) MarshalJSON() ([]byte, error) {
	o := r.object()
	o.Order(memberOrder)
	return o.MarshalJSON()
}

func (r *Round) object() jsonview.Object {
	o := jsonview.Of(r)
	entered := jsonview.Object{}
	for state, at := range r.Entered {
		entered.SetTime(string(state), at)
	}
	entered.SetTime("timeout", r.TimedOut)
	entered.SetTime("failure", r.Failed)
	entered.SetTime("lost", r.Lost)
	slices.SortFunc(entered, func(a, b jsonview.Member) int { return strings.Compare(a.Name, b.Name) })
	if len(entered) > 0 {
		o.Set("entered", entered)
	}
	if r.Exit != "" || r.OutputBytes+r.ErrorBytes > 0 { // the program ran
		o.Set("output_bytes", r.OutputBytes)
		o.Set("error_bytes", r.ErrorBytes)
	}
	if r.unread&task.TextResult == 0 && json.Valid([]byte(r.Result)) {
		o.Set("result", json.RawMessage(r.Result))
	}
	if r.unread&task.TextOutput == 0 && (r.Output != "" || r.OutputBytes > 0) {
		o.Set("output_whole", r.OutputWhole())
	}
	if r.Error != "" {
		o.Set("error_whole", r.ErrorWhole())
	}
	return o
}

// running returns the members that only a running round has.
func (r *Round) running() jsonview.Object {
	o := jsonview.Object{}
	o.SetTime("last_output", r.LastOutput)
	return o
}

// lines returns the lines of a text. An empty text has no lines.
func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}
