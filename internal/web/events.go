package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/pool"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
)

// Bounds of events.
const (
	eventsPause     = time.Second // between two looks at Redis
	eventsQueued    = 1000        // for one client; a client that is further behind is cut off
	eventsHeartbeat = 15 * time.Second
	maxFollowed     = 200    // tasks whose output clients follow; a token may have a share of them
	maxCaughtUp     = 20_000 // changes that a client may have missed
	catchingUp      = 4      // clients that read what they have missed at the same time
	progressAtOnce  = 300    // running tasks whose progress one look reads
	maxEventText    = 64 << 10
)

// addEvents adds the route of events.
func (a *api) addEvents() {
	add(a, route{
		http.MethodGet, "/events", "stream-events",
		"Stream state changes, progress and output of tasks (server-sent events)", toSee, false,
	}, a.streamEvents)
	a.alsoAnswers("stream-events", eventStream)
}

const eventStream = "text/event-stream"

// The types of events. An event of the type gap says that others may be missing.
const (
	stateEvents    = "state"
	progressEvents = "progress"
	outputEvents   = "output"
	gapEvent       = "gap"
)

// An event is an event about a task, as a client gets it. Clients share it.
type event struct {
	kind  string
	id    int64 // 0 for an event that concerns all tasks
	group string
	owner string
	frame []byte
}

// newEvent returns an event with its frame. A client that has got the event may continue at the position.
func newEvent(kind string, id int64, group, owner, position string, data any) *event {
	text, err := json.Marshal(data)
	if err != nil {
		panic(err) // the types below can be written
	}
	at := ""
	if position != "" {
		at = "id: " + position + "\n"
	}
	return &event{kind, id, group, owner, fmt.Appendf(nil, "event: %s\n%sdata: %s\n\n", kind, at, text)}
}

// stateData are the data of an event about a state.
type stateData struct {
	ID       int64      `json:"id"`
	State    task.State `json:"state"`
	Outcome  string     `json:"outcome,omitempty"`
	Round    int        `json:"round"`
	Program  string     `json:"program"`
	Campaign string     `json:"campaign,omitempty"`
	Time     time.Time  `json:"time"`
}

func stateEvent(c *admin.Change, position string) *event {
	return newEvent(stateEvents, c.ID, c.Group, c.Owner, position, stateData{
		c.ID, c.State, c.Outcome, c.Round,
		c.Program, c.Group, c.Time,
	})
}

// progressData are the data of an event about the progress of a running task.
type progressData struct {
	ID       int64          `json:"id"`
	Round    int            `json:"round"`
	Progress *task.Progress `json:"progress"`
}

// outputData are the data of an event about the output of a running task.
type outputData struct {
	ID      int64  `json:"id"`
	Round   int    `json:"round"`
	Text    string `json:"text"`
	Missing bool   `json:"missing,omitempty"`
	Ended   bool   `json:"ended,omitempty"`
}

func outputEvent(p *admin.OutputPart) *event {
	text := p.Text[:min(len(p.Text), maxEventText)]
	data := outputData{p.Task.ID, p.Round.Number, text, p.Skipped || p.Unknown || len(text) < len(p.Text), p.Ended}
	return newEvent(outputEvents, p.Task.ID, p.Task.Group, p.Task.Owner, "", data)
}

func gap(reason string) *event {
	return newEvent(gapEvent, 0, "", "", "", map[string]string{"reason": reason})
}

type eventsInput struct {
	IDs   []int64  `query:"ids" maxItems:"100" doc:"only events of these tasks"`
	Group string   `query:"group" maxLength:"200" doc:"only events of the tasks of this campaign"`
	Types []string `query:"types" enum:"state,progress,output" doc:"state, progress or output, which needs ids; without this parameter, state and progress"`
	Last  string   `header:"Last-Event-ID" maxLength:"100" doc:"the id of the last event that the client has got; the stream continues there"`
}

// A subscriber is a client that gets events.
type subscriber struct {
	ids     map[int64]bool // empty for all tasks
	group   string         // "" for all groups
	owner   string         // "" for all owners
	who     string         // the holder of the token
	kinds   map[string]bool
	queue   chan *event
	account *pool.Account // of the events in the queue
	cut     chan struct{} // closed when the queue was full

	// instead of queue and cut, for a client that only needs to know that something has happened; or nil
	signal chan<- struct{}
}

// wants reports whether the client gets an event.
func (s *subscriber) wants(e *event) bool {
	switch {
	case e.kind == gapEvent:
		return true
	case !s.kinds[e.kind], s.owner != "" && e.owner != s.owner, s.group != "" && e.group != s.group:
		return false
	}
	return len(s.ids) == 0 || s.ids[e.id]
}

func setOf[T comparable](all []T) map[T]bool {
	set := map[T]bool{}
	for _, x := range all {
		set[x] = true
	}
	return set
}

// subscriber returns the subscriber for a call. The error is a problem if the token may not see what it asks for.
func (a *api) subscriber(ctx context.Context, c *call, in *eventsInput) (*subscriber, error) {
	if len(in.Types) == 0 {
		in.Types = []string{stateEvents, progressEvents}
	}
	s := &subscriber{
		ids: setOf(in.IDs), group: in.Group, owner: c.token.Owner(), who: c.token.Holder(), kinds: setOf(in.Types),
		queue: make(chan *event, eventsQueued), account: c.account, cut: make(chan struct{}),
	}
	if in.Group != "" {
		if err := checkGroup(c, in.Group); err != nil {
			return nil, err
		}
	}
	if !s.kinds[outputEvents] {
		return s, nil
	}
	if len(s.ids) == 0 {
		return nil, refuse(string(task.CodeInvalid), "events of the type output need ids")
	}
	found := 0
	for _, err := range c.manager.List(ctx, c.own(manager.Query{IDs: in.IDs})) {
		if err != nil {
			return nil, err
		}
		found++
	}
	if found < len(s.ids) {
		return nil, fmt.Errorf("stream the output of %d tasks: %w", len(s.ids), task.ErrNoTask)
	}
	return s, nil
}

func (a *api) streamEvents(ctx context.Context, c *call, in *eventsInput) (*streamed, error) {
	s, err := a.subscriber(ctx, c, in)
	if err != nil {
		return nil, err
	}
	leave, err := a.events.join(ctx, s)
	if err != nil {
		return nil, err
	}
	defer leave()
	return nil, a.stream(c, eventStream, func(to *stream) error { return a.sendEvents(to, s, in.Last) })
}

// errSlow means that a client has not read its events in time.
var errSlow = errors.New("the client is too slow")

// sendEvents sends events to a client until it goes away.
func (a *api) sendEvents(to *stream, s *subscriber, last string) error {
	since, err := task.ParseTime(last)
	known, at := err == nil && since > 0 && since < task.Never, a.events.at()
	if known {
		at = last
	}
	if err := to.send("retry: 2000\nid: " + at + "\n\n"); err != nil {
		return err
	}
	switch {
	case known:
		err = a.catchUp(to, s, since)
	case last != "":
		err = to.send(string(gap("the id of the last event is unknown").frame))
	default:
		err = nil
	}
	if err != nil {
		return err
	}
	beat := time.NewTicker(a.events.heartbeat)
	defer beat.Stop()
	for {
		var err error
		select {
		case e := <-s.queue:
			err = to.sendEvents(s, e)
		case <-beat.C:
			// before the look at the queue: all events up to this position are in the queue, or were sent
			at := a.events.at()
			if len(s.queue) == 0 {
				err = to.send("id: " + at + "\n\n")
			}
		case <-s.cut:
			return errSlow
		case <-to.ctx.Done():
			return context.Cause(to.ctx)
		}
		if err != nil {
			return err
		}
	}
}

// sendEvents sends an event, and those that are in the queue of a client.
func (s *stream) sendEvents(of *subscriber, e *event) error {
	for {
		_, err := s.Write(e.frame)
		of.account.Return(int64(len(e.frame)))
		if err != nil {
			return err
		}
		if len(of.queue) == 0 {
			return s.flush()
		}
		e = <-of.queue
	}
}

// send sends a text.
func (s *stream) send(text string) error {
	if _, err := s.Write([]byte(text)); err != nil {
		return err
	}
	return s.flush()
}

// catchUp sends the changes that a client has missed since its last event. The client has joined the hub before, so
// nothing is missing in between.
func (a *api) catchUp(to *stream, s *subscriber, since task.Time) error {
	ctx, cancel := context.WithTimeout(to.ctx, 10*a.Timeout)
	defer cancel()
	changes := a.admin.Changes(since.Std())
	for n, more := 0, true; more; {
		select { // only while it reads: a client that reads slowly delays no other
		case a.events.catching <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		found, next, err := changes.Next(ctx)
		<-a.events.catching
		if err != nil {
			return err
		}
		more = next
		text := ""
		if changes.Lost {
			text = string(gap("the clock of Redis was set back").frame)
		}
		for i := range found {
			if e := stateEvent(&found[i], since.String()); s.wants(e) {
				text += string(e.frame)
			}
		}
		if n += len(found); more && n >= maxCaughtUp {
			more, text = false, text+string(gap("too many changes since the last event").frame)
		}
		if err := to.send(text); err != nil {
			return err
		}
	}
	return nil
}
