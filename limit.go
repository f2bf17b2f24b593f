package tdf

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// MaxLimits is the largest number of keys that have a limit at once.
const MaxLimits = 10_000

// Largest values of a [Limit].
const (
	MaxAtMost = 1_000_000
	MaxStarts = 10_000        // more starts would cost too much memory, because Redis keeps the time of each of them
	MaxPer    = Seconds(1e7)  // about 115 days
	MinPer    = Seconds(1e-3) // Redis's clock has no more than six decimals
)

// AnyNumber is the value of Limit.AtMost that allows any number of running tasks.
const AnyNumber = math.MaxInt32

// A Limit says how many tasks with the same limit key may run at once, and how often one of them may start
// (docs/lifecycle.md, "Limits per key").
type Limit struct {
	AtMost int // the largest number of running tasks; [AnyNumber] means any number

	// At most Starts rounds begin in any time span of the length Per. If Starts is 0, the limit has no rate.
	Starts int
	Per    Seconds
}

// Check returns an error if no key can have the limit.
func (l Limit) Check() error {
	switch {
	case l.AtMost < 0 || l.AtMost > MaxAtMost && l.AtMost != AnyNumber:
		return fmt.Errorf("invalid limit %d: want a number from 0 to %d", l.AtMost, MaxAtMost)
	case l.Starts < 0 || l.Starts > MaxStarts:
		return fmt.Errorf("invalid rate of %d starts: want 1 to %d starts", l.Starts, MaxStarts)
	case l.Starts > 0 && !(l.Per >= MinPer && l.Per <= MaxPer):
		return fmt.Errorf("invalid time span %v s of a rate: want %v to %v s", l.Per, MinPer, MaxPer)
	case l.AtMost == AnyNumber && l.Starts == 0:
		return fmt.Errorf("a limit without a number and a rate; want at least one of them")
	}
	return nil
}

// The parts of a limit in Redis.
const (
	limitAtMost = "at_most="
	limitRate   = "rate="
)

// String returns the text of the limit in Redis, such as "at_most=4 rate=10/1.000000".
func (l Limit) String() string {
	var parts []string
	if l.AtMost != AnyNumber {
		parts = append(parts, limitAtMost+strconv.Itoa(l.AtMost))
	}
	if l.Starts > 0 {
		parts = append(parts, limitRate+strconv.Itoa(l.Starts)+"/"+l.Per.String())
	}
	return strings.Join(parts, " ")
}

// ParseLimit reads the text of a limit in Redis. It returns false if the text is not a valid limit.
func ParseLimit(s string) (l Limit, ok bool) {
	l.AtMost = AnyNumber
	for part := range strings.FieldsSeq(s) {
		if n, is := strings.CutPrefix(part, limitAtMost); is {
			most, err := strconv.Atoi(n)
			if err != nil {
				return Limit{}, false
			}
			l.AtMost = most
		} else if rate, is := strings.CutPrefix(part, limitRate); is {
			starts, per, _ := strings.Cut(rate, "/")
			n, err := strconv.Atoi(starts)
			span, wrong := ParseTime(per)
			if err != nil || wrong != nil || n == 0 {
				return Limit{}, false
			}
			l.Starts, l.Per = n, Seconds(span)
		}
	}
	return l, l.Check() == nil
}

// ParseRate reads a rate such as "10/1s", "600/m" or "5/1.5s". The units are s, m, h and d.
func ParseRate(s string) (starts int, per Seconds, err error) {
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
		if n, err = strconv.ParseFloat(span, 64); err != nil || !isDecimal(span) {
			return 0, 0, wrong
		}
	} else if !known {
		return 0, 0, wrong
	}
	per = Seconds(math.Round(n*float64(unit)*1e6) / 1e6)
	return starts, per, Limit{AtMost: AnyNumber, Starts: starts, Per: per}.Check()
}

var rateUnits = map[byte]Seconds{'s': 1, 'm': 60, 'h': 3600, 'd': 86400}

// Text describes the limit for users, such as "at most 4 at once, at most 10 starts in 1 s".
func (l Limit) Text() string {
	var parts []string
	if l.AtMost != AnyNumber {
		parts = append(parts, fmt.Sprintf("at most %d at once", l.AtMost))
	}
	if l.Starts > 0 {
		parts = append(parts, fmt.Sprintf("at most %d starts in %s s", l.Starts, strconv.FormatFloat(float64(l.Per), 'f', -1, 64)))
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

// A LimitUse says how the limit of a key is used at the time Now.
type LimitUse struct {
	Key     string
	Limit   Limit
	Limited bool // whether the key has a limit

	Running int // tasks of the key with a claim
	Waiting int // tasks that wait because of the limit

	// Free is the number of rounds that may start now under the rate. NextStart is the time from which one more may start.
	Free      int
	NextStart Time

	// Returned and Unclaimed count the tasks that the server has returned to their queues, but no worker has claimed yet.
	// Unclaimed counts those that were returned longer than [ReturnPatience] ago, and Returned the others.
	Returned, Unclaimed int

	Now Time
}

// ReturnPatience is the time in which workers should claim a returned task. After this time, the task does not keep other
// tasks waiting, because its queue may have no workers.
const ReturnPatience = Seconds(10)

// limitRecheck is the longest time between two checks of a key whose tasks wait. When a running task leaves its place, or
// the limit changes, the server checks the key at once. The other checks find places that were not freed, and tasks that
// workers did not claim.
const limitRecheck = ReturnPatience

// Room returns the number of tasks that may start now.
func (u LimitUse) Room() int {
	if !u.Limited {
		return AnyNumber
	}
	room := AnyNumber
	if u.Limit.AtMost != AnyNumber {
		room = max(0, u.Limit.AtMost-u.Running)
	}
	if u.Limit.Starts > 0 {
		room = min(room, u.Free)
	}
	return room
}

// Return returns how many waiting tasks the server must return to their queues now, and when it must check the key again.
// The number of tasks is the room of the limit, or the number of returned tasks that workers did not claim in time,
// whichever is larger. Tasks that were returned lately count as part of it. So the number of unclaimed tasks doubles each
// time. Even a million tasks of a queue without workers do not delay the tasks of another queue for long.
func (u LimitUse) Return() (n int, next Time) {
	next = u.Now.Add(limitRecheck)
	if room := u.Room(); room > 0 {
		n = min(max(0, max(room, u.Unclaimed)-u.Returned), u.Waiting)
	}
	if starts := u.Limit.Starts; starts > 0 && u.Running < u.Limit.AtMost && (n > 0 || u.Free < starts) {
		next = min(next, max(u.NextStart, u.Now))
	}
	return n, next
}

// checkLimitKey checks the limit key of a task, which may have none.
func (d *Properties) checkLimitKey() error { return checkName(fieldLimitKey, d.LimitKey) }
