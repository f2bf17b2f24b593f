package skuld

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/lazy"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/web/wire"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/sweep"
)

const (
	program   = "skuld" // of all tasks; a worker of TDF with a handler for it may run them, too
	group     = "skuld"
	keyPrefix = "skuld:" // of unique keys

	mostClaims  = 1000 // in one answer, and in each task of a list: the last ones
	listClaims  = 10
	mostUpdates = 1000 // of a claim
)

// A wireTask is a task as clients see it. Data that is not a text is only in DataBase64.
type wireTask struct {
	ID         string      `json:"id"`
	Queue      string      `json:"queue"`
	Data       *string     `json:"data,omitempty"`
	DataBase64 []byte      `json:"data_base64,omitempty"`
	Priority   int         `json:"priority"`
	State      string      `json:"state"` // that of TDF
	Claims     []wireClaim `json:"claims"`
	ClaimsFrom int         `json:"claims_from,omitempty"` // the id of the first of Claims, if the task has more
}

// A wireClaim is one claim of a task. Times are milliseconds since 1970, by Redis's clock.
type wireClaim struct {
	Start     *int64            `json:"start"`
	End       *int64            `json:"end"` // when it ends, or has ended
	Completed *int64            `json:"completed"`
	Updates   []json.RawMessage `json:"updates,omitempty"`

	UpdatesFrom int `json:"updates_from,omitempty"` // the number of the first of Updates, if there are more
}

var validID = lazy.Regexp(`^[A-Za-z0-9_-]{1,100}$`)

// idOf returns the Skuld id of a task, or "" if the task is none of Skuld.
func idOf(t *task.Task) string {
	if t == nil || t.Program != program || !strings.HasPrefix(t.Unique, keyPrefix) {
		return ""
	}
	return t.Unique[len(keyPrefix):]
}

// facts are what an answer needs of a task, with its last rounds.
func facts(rounds int) redisstate.Want {
	return redisstate.Want{
		Fields: redisstate.Facts, Rounds: redisstate.LastRounds(rounds),
		Texts: redisstate.SameTexts(redisstate.TextsOf{Round: redisstate.OfTask, Texts: task.TextInput}),
	}
}

// find reads the task with an id, with its last rounds. If owner is not "", it finds only tasks of this owner.
func find(ctx context.Context, s *redisstate.Store, id, owner string, rounds int) (*task.Task, error) {
	if !validID().MatchString(id) {
		return nil, wire.Invalid(
			fmt.Sprintf("task %.100q: want the id of a task: 1 to 100 letters, digits, hyphens and underscores", id))
	}
	number, err := s.Holder(ctx, keyPrefix+id)
	if err != nil {
		return nil, err
	}
	stored, err := s.ReadOne(ctx, number, facts(rounds))
	if err != nil && task.CodeOf(err) != task.CodeNotFound {
		return nil, err
	}
	if t := stored.Task; idOf(t) == id && (owner == "" || t.Owner == owner) {
		return t, nil
	}
	return nil, fmt.Errorf("task %s: %w", id, task.ErrNoTask)
}

// view returns a task with its last claims, without their updates.
func view(t *task.Task, most int) wireTask {
	out := wireTask{
		ID: idOf(t), Queue: cmp.Or(t.Queue, class.DefaultQueue), Priority: t.Priority, State: string(t.State),
		Claims: []wireClaim{},
	}
	out.Data, out.DataBase64 = dataOf(t.Input)
	claims := t.Round
	if t.Current().Claim != "" {
		claims++
	}
	out.ClaimsFrom = max(0, t.Round+1-most)
	for i := out.ClaimsFrom; i < claims; i++ {
		out.Claims = append(out.Claims, claimOf(t, i))
	}
	return out
}

func claimOf(t *task.Task, id int) (c wireClaim) {
	r := t.Rounds.At(id)
	c.Start = ms(r.Entered[task.Running])
	switch end := cmp.Or(r.Entered[task.Executed], r.LostAt, r.TimedOutAt, r.Entered[task.Expired]); {
	case end > 0:
		c.End = ms(end)
	case id == t.Round && t.State == task.Running:
		c.End = ms(t.LeaseUntil)
	default: // released
		c.End = ms(t.Rounds.At(id + 1).Entered[task.Open])
	}
	if r.Entered[task.Succeeded] > 0 {
		c.Completed = ms(r.Entered[task.Executed])
	}
	return c
}

func ms(t task.Time) *int64 {
	if t <= 0 || t >= task.Never {
		return nil
	}
	n := t.Std().UnixMilli()
	return &n
}

// Data is the input of the task: one word, or if a program could not get it as an argument, a flag and a word.
const base64Flag = "--base64 "

func inputOf(data []byte) string {
	if text := string(data); utf8.ValidString(text) && !strings.Contains(text, "\x00") {
		return sweep.Quote(text)
	}
	return base64Flag + base64.StdEncoding.EncodeToString(data)
}

func dataOf(input string) (*string, []byte) {
	words, err := task.SplitInput(input)
	if err == nil && len(words) == 2 && words[0]+" " == base64Flag {
		if data, err := base64.StdEncoding.DecodeString(words[1]); err == nil {
			return nil, data
		}
	}
	if err == nil && len(words) == 1 {
		return &words[0], nil
	}
	return &input, nil // a task that a user has changed
}

// A message is any JSON. As an update, it is one line: a text as it is, unless it would look like other JSON.
func lineOf(message json.RawMessage) string {
	var text string
	if json.Unmarshal(message, &text) == nil && text != "" && !json.Valid([]byte(text)) &&
		!strings.ContainsFunc(text, func(r rune) bool { return r < ' ' }) {
		return text
	}
	compact, _ := json.Marshal(message)
	return string(compact)
}

func messageOf(line string) json.RawMessage {
	if json.Valid([]byte(line)) {
		return json.RawMessage(line)
	}
	text, _ := json.Marshal(line)
	return text
}
