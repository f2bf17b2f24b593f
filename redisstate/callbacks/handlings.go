package callbacks

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// A Handling says of which tasks a manager calls the callbacks (docs/manager.md, "Callbacks").
type Handling struct {
	ID       string    `json:"-"` // of one call of Run
	Manager  string    `json:"manager"`
	Groups   []string  `json:"groups,omitempty"`
	All      bool      `json:"all,omitempty"`      // all groups, except those of others
	Forced   bool      `json:"forced,omitempty"`   // also those of others
	Pipeline string    `json:"pipeline,omitempty"` // the pipeline whose stages the groups are
	Until    task.Time `json:"until"`              // the record counts until then, unless it is renewed
}

// leasesKept is how long Redis keeps the leases of a call of Run after their last renewal.
const leasesKept = 24 * time.Hour

// SayHandling stores or renews a Handling, and the leases of its call of Run.
func (s Callbacks) SayHandling(ctx context.Context, h Handling) error {
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	return s.Conn.BestEffort(ctx, "say which tasks a manager handles",
		func(p redis.Pipeliner) {
			p.HSet(ctx, s.Conn.Keys.Handlings(), h.ID, text)
			p.HSet(ctx, s.Conn.Keys.CallbackLeases(), h.ID, h.Until.String())
			p.Expire(ctx, s.Conn.Keys.LeasedBy(h.ID), leasesKept)
		})
}

// EndHandlings removes Handlings. Their leases end.
func (s Callbacks) EndHandlings(ctx context.Context, ids ...string) error {
	return s.Conn.Pipeline(conn.Unacknowledged(ctx), "remove which tasks a manager handles",
		func(p redis.Pipeliner) {
			p.HDel(ctx, s.Conn.Keys.Handlings(), ids...)
			p.HDel(ctx, s.Conn.Keys.CallbackLeases(), ids...)
			for _, id := range ids {
				p.Del(ctx, s.Conn.Keys.LeasedBy(id))
			}
		})
}

// Handlings returns the Handlings that count at the time now, ordered by their ids. It removes the others.
func (s Callbacks) Handlings(ctx context.Context, now task.Time) ([]Handling, error) {
	texts, err := conn.Ask(ctx, s.Conn, "read which tasks managers handle",
		func(r redis.Cmdable) *redis.MapStringStringCmd { return r.HGetAll(ctx, s.Conn.Keys.Handlings()) })
	var all []Handling
	var over []string
	for id, text := range texts {
		h := Handling{}
		if json.Unmarshal([]byte(text), &h) != nil || h.Until < now {
			over = append(over, id)
			continue
		}
		h.ID = id
		all = append(all, h)
	}
	if len(over) > 0 {
		_ = s.EndHandlings(ctx, over...) // the next reader tries again
	}
	slices.SortFunc(all, func(a, b Handling) int { return cmp.Compare(a.ID, b.ID) })
	return all, err
}

// AllGroups is the group in the answer of Overlap that stands for all.
const AllGroups = "all groups"

// Overlap returns the groups whose tasks both handle. Two managers of one pipeline share its tasks on purpose.
func (h *Handling) Overlap(o *Handling) (groups []string) {
	switch {
	case h.Pipeline != "" && h.Pipeline == o.Pipeline:
		return nil
	case h.All && o.All:
		return []string{AllGroups}
	case h.All:
		h, o = o, h
		fallthrough
	case o.All:
		if o.Forced {
			return h.Groups
		}
		return nil
	}
	for _, g := range h.Groups {
		if slices.Contains(o.Groups, g) {
			groups = append(groups, g)
		}
	}
	return groups
}
