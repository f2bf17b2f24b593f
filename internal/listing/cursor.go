package listing

import (
	"encoding/base64"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

// A position identifies the last task that a walk has examined.
type position struct {
	kind  string                // the kind of the query, which decides the meaning of place.Order
	place *redisstate.ListEntry // nil before the first task
}

// The kinds of positions.
const (
	byTime = "time"
	byID   = "group"
	given  = "ids" // place.Order is the index of the task in the IDs of the query
)

func kindOf(q *task.Query) string {
	switch {
	case len(q.IDs) > 0:
		return given
	case q.Group != "":
		return byID
	}
	return byTime
}

func (p position) String() string {
	if p.place == nil {
		return base64.RawURLEncoding.EncodeToString([]byte(p.kind))
	}
	order := strconv.FormatFloat(p.place.Order, 'g', -1, 64)
	return base64.RawURLEncoding.EncodeToString([]byte(p.kind + " " + order + " " + p.place.Member))
}

// positionOf parses a cursor, which is a text that position.String has returned for the same query.
func positionOf(q *task.Query, text string) (position, error) {
	p := position{kind: kindOf(q)}
	if text == "" {
		return p, nil
	}
	plain, err := base64.RawURLEncoding.DecodeString(text)
	parts := strings.SplitN(string(plain), " ", 3)
	if err != nil || parts[0] != p.kind || len(parts) == 2 {
		return p, &task.QueryError{Problem: fmt.Sprintf("the cursor %.80q does not belong to this query; use the "+
			"cursor that the query's last page returned, or no cursor to begin again", text)}
	}
	if len(parts) == 1 {
		return p, nil
	}
	order, err := strconv.ParseFloat(parts[1], 64)
	if err != nil || math.IsNaN(order) {
		return p, &task.QueryError{Problem: fmt.Sprintf("the cursor %.80q has no valid position", text)}
	}
	p.place = &redisstate.ListEntry{Order: order, Member: parts[2]}
	return p, nil
}

// placesAmong returns the places of the ids that follow the position, but at most limit places.
func (p position) placesAmong(ids []int64, limit int) (places []redisstate.ListEntry, last bool) {
	from := 0
	if p.place != nil {
		from = int(max(-1, min(p.place.Order, float64(len(ids))))) + 1
	}
	from = min(from, len(ids))
	to := min(from+limit, len(ids))
	for i, id := range ids[from:to] {
		places = append(places, redisstate.ListEntry{Order: float64(from + i), Member: strconv.FormatInt(id, 10)})
	}
	return places, to == len(ids)
}
