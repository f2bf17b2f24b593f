package access

import (
	"errors"
	"testing"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
)

func TestClaim(t *testing.T) {
	submitter := Token{Name: "ci", Role: Submitter}
	queued := Token{Name: "ci", Role: Submitter, Queues: []string{"gpu", "slow"}}
	operator := Token{Name: "op", Role: Operator}
	for name, c := range map[string]struct {
		token Token
		d     task.Definition
		owner string
		queue string
		may   bool
	}{
		"plain":                 {submitter, task.Definition{}, "ci", "", true},
		"any queue":             {submitter, task.Definition{Queue: "q"}, "ci", "q", true},
		"own owner":             {submitter, task.Definition{Owner: "ci"}, "ci", "", true},
		"another owner":         {submitter, task.Definition{Owner: "op"}, "", "", false},
		"own group":             {submitter, task.Definition{Group: "ci/night"}, "ci", "", true},
		"another group":         {submitter, task.Definition{Group: "night"}, "", "", false},
		"a similar group":       {submitter, task.Definition{Group: "ci2/night"}, "", "", false},
		"the name itself":       {submitter, task.Definition{Group: "ci"}, "", "", false},
		"own key":               {submitter, task.Definition{Unique: "ci/a"}, "ci", "", true},
		"another key":           {submitter, task.Definition{Unique: "a"}, "", "", false},
		"after own group":       {submitter, task.Definition{After: &task.Dependencies{Group: "ci/a"}}, "ci", "", true},
		"after another group":   {submitter, task.Definition{After: &task.Dependencies{Group: "a"}}, "", "", false},
		"after any of another":  {submitter, task.Definition{AfterAny: &task.Dependencies{Group: "a"}}, "", "", false},
		"first queue":           {queued, task.Definition{}, "ci", "gpu", true},
		"second queue":          {queued, task.Definition{Queue: "slow"}, "ci", "slow", true},
		"another queue":         {queued, task.Definition{Queue: "q"}, "", "", false},
		"the default queue":     {queued, task.Definition{Queue: class.DefaultQueue}, "", "", false},
		"operator":              {operator, task.Definition{Group: "g", Unique: "u", Queue: "q"}, "", "q", true},
		"operator for a token":  {operator, task.Definition{Owner: "ci"}, "ci", "", true},
		"operator and no owner": {operator, task.Definition{}, "", "", true},
	} {
		d := c.d
		err := c.token.Claim(&d)
		expect.Equal(t, c.may, err == nil, name)
		if err != nil {
			expect.True(t, errors.As(err, new(*ForbiddenError)), name, err)
		}
		if c.may {
			expect.Equal(t, d.Owner, c.owner, name)
			expect.Equal(t, d.Queue, c.queue, name)
		}
	}
}

func TestCheckQueue(t *testing.T) {
	token := Token{Name: "w", Role: Worker, Queues: []string{class.DefaultQueue}}
	for queue, may := range map[string]bool{"": true, "default": true, "q": false} {
		expect.Equal(t, token.CheckQueue(queue) == nil, may, queue)
	}
}
