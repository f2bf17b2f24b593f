package listing

import (
	"encoding/base64"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tdf-framework/tdf/redisstate"
)

// A position names the last task that a walk has looked at.
type position struct {
	kind  string                // the kind of the query, which decides the meaning of place.Order
	place *redisstate.ListEntry // nil: no task yet
}

// Kinds of positions.
const (
	byTime = "time"
	byID   = "group"
	given  = "ids" // place.Order is the index in Query.IDs
)

func (q *Query) kind() string {
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

// position parses a text that String wrote for the same query.
func (q *Query) position(text string) (position, error) {
	p := position{kind: q.kind()}
	if text == "" {
		return p, nil
	}
	plain, err := base64.RawURLEncoding.DecodeString(text)
	parts := strings.SplitN(string(plain), " ", 3)
	if err != nil || parts[0] != p.kind || len(parts) == 2 {
		return p, &QueryError{fmt.Sprintf("the cursor %.80q does not belong to this query; use the cursor of its last page, or none to begin again", text)}
	}
	if len(parts) == 1 {
		return p, nil
	}
	order, err := strconv.ParseFloat(parts[1], 64)
	if err != nil || math.IsNaN(order) {
		return p, &QueryError{fmt.Sprintf("the cursor %.80q has no valid position", text)}
	}
	p.place = &redisstate.ListEntry{Order: order, Member: parts[2]}
	return p, nil
}

// among returns the places of up to most ids behind the position.
func (p position) among(ids []int64, most int) (places []redisstate.ListEntry, last bool) {
	from := 0
	if p.place != nil {
		from = int(max(-1, min(p.place.Order, float64(len(ids))))) + 1
	}
	from = min(from, len(ids))
	to := min(from+most, len(ids))
	for i, id := range ids[from:to] {
		places = append(places, redisstate.ListEntry{Order: float64(from + i), Member: strconv.FormatInt(id, 10)})
	}
	return places, to == len(ids)
}
