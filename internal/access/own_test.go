package access

import (
	"errors"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/expect"
)

func TestClaim(t *testing.T) {
	submitter := Token{Name: "ci", Role: Submitter}
	queued := Token{Name: "ci", Role: Submitter, Queues: []string{"gpu", "slow"}}
	operator := Token{Name: "op", Role: Operator}
	for name, c := range map[string]struct {
		token Token
		d     tdf.Definition
		owner string
		queue string
		may   bool
	}{
		"plain":                 {submitter, tdf.Definition{}, "ci", "", true},
		"any queue":             {submitter, tdf.Definition{Queue: "q"}, "ci", "q", true},
		"own owner":             {submitter, tdf.Definition{Owner: "ci"}, "ci", "", true},
		"another owner":         {submitter, tdf.Definition{Owner: "op"}, "", "", false},
		"own group":             {submitter, tdf.Definition{Group: "ci/night"}, "ci", "", true},
		"another group":         {submitter, tdf.Definition{Group: "night"}, "", "", false},
		"a similar group":       {submitter, tdf.Definition{Group: "ci2/night"}, "", "", false},
		"the name itself":       {submitter, tdf.Definition{Group: "ci"}, "", "", false},
		"own key":               {submitter, tdf.Definition{Unique: "ci/a"}, "ci", "", true},
		"another key":           {submitter, tdf.Definition{Unique: "a"}, "", "", false},
		"after own group":       {submitter, tdf.Definition{After: &tdf.Dependencies{Group: "ci/a"}}, "ci", "", true},
		"after another group":   {submitter, tdf.Definition{After: &tdf.Dependencies{Group: "a"}}, "", "", false},
		"after any of another":  {submitter, tdf.Definition{AfterAny: &tdf.Dependencies{Group: "a"}}, "", "", false},
		"first queue":           {queued, tdf.Definition{}, "ci", "gpu", true},
		"second queue":          {queued, tdf.Definition{Queue: "slow"}, "ci", "slow", true},
		"another queue":         {queued, tdf.Definition{Queue: "q"}, "", "", false},
		"the default queue":     {queued, tdf.Definition{Queue: class.DefaultQueue}, "", "", false},
		"operator":              {operator, tdf.Definition{Group: "g", Unique: "u", Queue: "q"}, "", "q", true},
		"operator for a token":  {operator, tdf.Definition{Owner: "ci"}, "ci", "", true},
		"operator and no owner": {operator, tdf.Definition{}, "", "", true},
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
