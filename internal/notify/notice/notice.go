// Package notice has the notices that servers write (docs/notifications.md). It is apart from package notify, so that
// programs that only read notices do not contain a client for mail.
package notice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/notices"
)

// A Kind is a kind of event.
type Kind string

// The kinds of events.
const (
	CampaignEnded Kind = "campaign_ended"
	FailuresAbove Kind = "failures_above"
	WorkerLost    Kind = "worker_lost"
)

// A Notice tells of an event.
type Notice struct {
	ID       int64                `json:"id,omitempty"` // grows with each notice; Redis has it apart from the notice
	Kind     Kind                 `json:"kind"`
	At       time.Time            `json:"at"`
	Text     string               `json:"text"` // a sentence for people
	Campaign string               `json:"campaign,omitempty"`
	Worker   string               `json:"worker,omitempty"`
	Tasks    map[task.State]int64 `json:"tasks,omitempty"` // the tasks of the campaign in each state

	Delivered map[string]time.Time `json:"delivered,omitempty"` // when each channel has taken the notice: webhook, mail
	Tries     int                  `json:"tries,omitempty"`
	Error     string               `json:"error,omitempty"` // of the last try, if it has failed
	GivenUp   bool                 `json:"given_up,omitempty"`
}

// Stored returns the notice as Redis stores it.
func (n Notice) Stored() string {
	n.ID = 0
	text, err := json.Marshal(n)
	if err != nil {
		panic(err) // a Notice has only values that JSON has
	}
	return string(text)
}

// Delivery says which channels have taken the notice, or why they have not.
func (n *Notice) Delivery() string {
	taken := strings.Join(slices.Sorted(maps.Keys(n.Delivered)), ", ")
	switch {
	case n.GivenUp:
		return "given up after " + strconv.Itoa(n.Tries) + " tries: " + n.Error
	case n.Error != "":
		return "tries again: " + n.Error
	case taken == "":
		return "waits"
	}
	return taken
}

// ErrUnreadable means that another program has written a notice, or has changed it.
var ErrUnreadable = task.NewError(task.CodeDamaged, "cannot be read")

// Read reads a notice as Redis stores it.
func Read(stored notices.Stored) (n Notice, err error) {
	if err := json.Unmarshal([]byte(stored.Text), &n); err != nil {
		return n, fmt.Errorf("notice %d %w: %w", stored.ID, ErrUnreadable, err)
	}
	n.ID = stored.ID
	return n, nil
}

// List returns the notices that Redis keeps, the newest ones first, and at most the given number. It leaves out those
// that it cannot read; the error names them, and wraps [ErrUnreadable].
func List(ctx context.Context, s *redisstate.Store, most int) ([]Notice, error) {
	stored, err := s.Notices.Notices(ctx, most)
	if err != nil {
		return nil, err
	}
	var all []Notice
	for _, x := range stored {
		n, wrong := Read(x)
		err = errors.Join(err, wrong)
		if wrong == nil {
			all = append(all, n)
		}
	}
	return all, err
}
