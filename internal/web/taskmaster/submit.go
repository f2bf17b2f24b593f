package taskmaster

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/web/wire"
)

// usualAttempts is the default of maxAttempts.
const usualAttempts = 3

// longestBackoff is the longest wait before a further attempt. TDF varies waits by up to 20 %, so the setting is
// shorter.
const longestBackoff = task.Seconds(300) / 1.2

type submission struct {
	QueueName   string          `json:"queueName"`
	Payload     json.RawMessage `json:"payload"`
	Priority    *int            `json:"priority"`
	MaxAttempts *int            `json:"maxAttempts"`
	Deadline    *time.Time      `json:"deadline"`
	Tags        []string        `json:"tags"`
}

// submitted is the answer to a submission.
type submitted struct {
	TaskID string `json:"taskId"`
	Status string `json:"status"`
}

func (a *app) submit(ctx context.Context, c *wire.Call) (*wire.Answer, error) {
	var in submission
	if err := c.Read(&in); err != nil {
		return nil, err
	}
	d, err := a.properties(&in)
	if err != nil {
		return nil, err
	}
	if err := c.Token.CheckQueue(in.QueueName); err != nil {
		return nil, err
	}
	d.Owner, d.CorrelationID = c.Token.Owner(), c.ID
	ids, err := a.store.Open(ctx, c.Token.Holder(), d)
	if err != nil {
		return nil, err
	}
	return wire.JSON(http.StatusAccepted, submitted{a.ids.uuid(ids[0]), pending})
}

// properties returns the properties of the task that a submission opens.
func (a *app) properties(in *submission) (d task.Properties, err error) {
	attempts, priority := orUsual(in.MaxAttempts, usualAttempts), orUsual(in.Priority, 0)
	switch {
	case strings.TrimSpace(in.QueueName) == "":
		return d, wire.Invalid("queueName is missing")
	case len(in.Payload) == 0:
		return d, wire.Invalid("payload is missing")
	case attempts < 1 || attempts > task.MaxCount:
		return d, wire.Invalid(fmt.Sprintf("maxAttempts: want 1 to %d", task.MaxCount))
	case checkTags(in.Tags) != nil:
		return d, checkTags(in.Tags)
	case priority < math.MinInt32 || priority > math.MaxInt32:
		return d, wire.Invalid("priority: want a number of 32 bits")
	}
	d = task.Defaults(Program, "", quote(string(in.Payload)))
	d.Queue, d.Group, d.Priority, d.Tags = queueOf(in.QueueName), groupPrefix+in.QueueName, priority,
		slices.Compact(slices.Sorted(slices.Values(encodeTags(in.Tags))))
	d.MaxAttempts, d.MaxFails, d.MaxTimeouts, d.MaxLosses = attempts, attempts-1, attempts-1, attempts-1
	d.FailOn, d.Backoff, d.BackoffFactor, d.BackoffMax = task.FailOnExit, 2*a.retry, 2, longestBackoff
	d.KeepFinished, d.KeepArchived, d.KeepOutputs = a.keep.KeepFinished, a.keep.KeepArchived, a.keep.KeepOutputs
	if in.Deadline != nil {
		d.ClaimBefore = max(task.At(*in.Deadline), 1) // a deadline in the past is valid; 0 would mean no time
	}
	return d, d.Validate()
}

// orUsual returns the value of a member, or the usual value if the body does not have the member.
func orUsual(given *int, usual int) int {
	if given == nil {
		return usual
	}
	return *given
}

// queueOf returns the queue of a task. TDF's default queue has no name.
func queueOf(name string) string {
	if name == class.DefaultQueue {
		return ""
	}
	return name
}

// quote returns the input whose only argument is a text, so that programs and handlers of TDF get the payload as one
// argument.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// payloadOf returns the payload of a task. If another client has opened it with another input, the payload is the input
// as a text.
func payloadOf(input string) json.RawMessage {
	if args, err := task.SplitInput(input); err == nil && len(args) == 1 && json.Valid([]byte(args[0])) {
		return json.RawMessage(args[0])
	}
	text, _ := json.Marshal(input) // a text can always be written
	return text
}
