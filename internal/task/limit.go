package task

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-framework/tdf/internal/unixtime"
)

// MaxLimits is the largest number of keys that have a limit at once.
const MaxLimits = 10_000

// Largest values of a [Limit].
const (
	MaxAtMost = 1_000_000
	MaxStarts = 10_000            // more starts would cost too much memory, because Redis keeps the time of each of them
	MaxPer    = 1e7 * time.Second // about 115 days
	MinPer    = time.Millisecond  // Redis's clock has no more than six decimals
)

// A Limit says how many tasks with the same limit key may run at once, and how often one of them may start
// (docs/lifecycle.md, "Limits per key").
type Limit struct {
	// AtMost is the largest number of running tasks. If it is 0, a limit with a rate allows any number, and a limit
	// without a rate allows no task to start.
	AtMost int

	// At most Starts rounds begin in any time span of the length Per. If Starts is 0, the limit has no rate.
	Starts int
	Per    time.Duration
}

// NewLimit returns the limit that a user has written. The number is nil if the user has given none, and starts is 0
// without a rate.
func NewLimit(atMost *int, starts int, per time.Duration) (Limit, error) {
	l := Limit{Starts: starts, Per: per}
	switch {
	case atMost == nil && starts == 0:
		return l, errors.New("a limit without a number and a rate; want at least one of them")
	case atMost != nil && *atMost == 0 && starts > 0:
		return l, errors.New("a limit of 0 with a rate: with 0, no task starts; leave out one of them")
	case atMost != nil:
		l.AtMost = *atMost
	}
	return l, l.Check()
}

// ReadLimit returns the limit that a user has written as texts: a number such as "4", and a rate such as "10/1s" (see
// [ParseRate]). One of them may be "".
func ReadLimit(number, rate string) (l Limit, err error) {
	var atMost *int
	if number != "" {
		n, err := strconv.Atoi(number)
		if err != nil {
			return l, fmt.Errorf("invalid limit %q: want a number from 0 to %d, or none", number, MaxAtMost)
		}
		atMost = &n
	}
	if rate != "" {
		if l.Starts, l.Per, err = ParseRate(rate); err != nil {
			return l, err
		}
	}
	return NewLimit(atMost, l.Starts, l.Per)
}

// HasNumber reports whether the limit has a largest number of running tasks.
func (l Limit) HasNumber() bool { return l.AtMost > 0 || l.Starts == 0 }

// StopsAll reports whether the limit lets no task start.
func (l Limit) StopsAll() bool { return l.HasNumber() && l.AtMost == 0 }

// Check returns an error if no key can have the limit.
func (l Limit) Check() error {
	switch {
	case l.AtMost < 0 || l.AtMost > MaxAtMost:
		return fmt.Errorf("invalid limit %d: want a number from 0 to %d", l.AtMost, MaxAtMost)
	case l.Starts < 0 || l.Starts > MaxStarts:
		return fmt.Errorf("invalid rate of %d starts: want 1 to %d starts", l.Starts, MaxStarts)
	case l.Starts > 0 && !(l.Per >= MinPer && l.Per <= MaxPer):
		return fmt.Errorf("invalid time span %v s of a rate: want %v to %v s", For(l.Per), For(MinPer), For(MaxPer))
	}
	return nil
}

// KeepStarts returns the number of seconds for which Redis must keep the last starts of the key. It is 0 if the limit
// has no rate. Otherwise, it is a minute longer than the time span of the rate.
func (l Limit) KeepStarts() int {
	if l.Starts == 0 {
		return 0
	}
	return int(math.Ceil(l.Per.Seconds())) + 60
}

// String returns the text of the limit in Redis, such as "at_most=4 rate=10/1".
func (l Limit) String() string {
	var parts []string
	if l.HasNumber() {
		parts = append(parts, "at_most="+strconv.Itoa(l.AtMost))
	}
	if l.Starts > 0 {
		parts = append(parts, "rate="+strconv.Itoa(l.Starts)+"/"+For(l.Per).String())
	}
	return strings.Join(parts, " ")
}

// ParseLimit reads the text of a limit in Redis. Like claims (limiting.lua), it reads what is no limit as one that lets
// no task start. It returns false for an empty text.
func ParseLimit(text string) (l Limit, ok bool) {
	number, rate := text, ""
	if i := strings.Index(text, "rate="); i >= 0 {
		number, rate = strings.TrimSpace(text[:i]), text[i+len("rate="):]
	}
	if number != "" {
		n, err := strconv.Atoi(strings.TrimPrefix(number, "at_most="))
		if err != nil {
			return Limit{}, true
		}
		l.AtMost = n
	}
	if rate != "" && (number == "" || l.AtMost > 0) {
		var err error
		if l.Starts, l.Per, err = ParseRate(rate); err != nil {
			return Limit{}, true
		}
	}
	return l, text != ""
}

// ParseRate reads a rate such as "10/1s", "600/m" or "5/1.5s". The units are s, m, h and d.
func ParseRate(s string) (starts int, per time.Duration, err error) {
	wrong := fmt.Errorf("invalid rate %q: want STARTS/TIME, such as 10/1s or 600/m", s)
	count, span, ok := strings.Cut(s, "/")
	starts, err = strconv.Atoi(count)
	if !ok || err != nil || starts < 1 || span == "" {
		return 0, 0, wrong
	}
	unit, known := rateUnits[span[len(span)-1]]
	if known {
		span = span[:len(span)-1]
	} else {
		unit = 1
	}
	n := 1.0
	if span != "" {
		if n, err = strconv.ParseFloat(span, 64); err != nil || !unixtime.IsDecimal(span) {
			return 0, 0, wrong
		}
	} else if !known {
		return 0, 0, wrong
	}
	per = Seconds(n * float64(unit)).Std()
	return starts, per, Limit{Starts: starts, Per: per}.Check()
}

var rateUnits = map[byte]Seconds{'s': 1, 'm': 60, 'h': 3600, 'd': 86400}

// Text describes the limit for users, such as "at most 4 at once, at most 10 starts in 1 s".
func (l Limit) Text() string {
	var parts []string
	if l.HasNumber() {
		parts = append(parts, fmt.Sprintf("at most %d at once", l.AtMost))
	}
	if l.Starts > 0 {
		parts = append(parts, fmt.Sprintf("at most %d starts in %s s", l.Starts, strconv.FormatFloat(l.Per.Seconds(),
			'f', -1, 64)))
	}
	return strings.Join(parts, ", ")
}

// CheckLimitKey returns a *[PropertyError] if no task can have the limit key.
func CheckLimitKey(key string) error {
	if key == "" {
		return invalidProperty(fieldLimitKey, "is empty; want 1 to %d bytes", MaxName)
	}
	return checkName(fieldLimitKey, key)
}

// A LimitUse says how the limit of a key is used.
type LimitUse struct {
	Key     string
	Limit   Limit
	Limited bool // whether the key has a limit

	Running int // tasks of the key with a claim
	Waiting int // tasks that wait because of the limit
	Free    int // rounds that may start now under the rate
}

// Room returns the number of tasks that may start now.
func (u LimitUse) Room() int {
	room := math.MaxInt32
	if !u.Limited {
		return room
	}
	if u.Limit.HasNumber() {
		room = max(0, u.Limit.AtMost-u.Running)
	}
	if u.Limit.Starts > 0 {
		room = min(room, u.Free)
	}
	return room
}
