package tdf

import (
	"fmt"
	"math"
	"slices"
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

// KeepStarts returns the number of seconds for which Redis must keep the last starts of the key. It is 0 if the limit has no
// rate. Otherwise, it is a minute longer than the time span of the rate.
func (l Limit) KeepStarts() int {
	if l.Starts == 0 {
		return 0
	}
	return int(math.Ceil(float64(l.Per))) + 60
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
	Unserved            []string // the partitions of the first tasks that Unclaimed counts: they may have no workers

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

// Return returns how many waiting tasks may return to their queues because the limit has room, and when the server must check
// the key again. Tasks that were returned lately use the room until workers claim them.
func (u LimitUse) Return() (n int, next Time) {
	next = u.Now.Add(limitRecheck)
	n = min(max(0, u.Room()-u.Returned), u.Waiting)
	if starts := u.Limit.Starts; starts > 0 && u.Running < u.Limit.AtMost && (n > 0 || u.Free < starts) {
		next = min(next, max(u.NextStart, u.Now))
	}
	return n, next
}

// ToRead returns how many waiting tasks the server must read so that n of them can return.
func (u LimitUse) ToRead(n int) int {
	if n == 0 {
		return 0
	}
	return min(n+u.Unclaimed, u.Waiting)
}

// A LimitChoice says which waiting tasks of a key return to their queues, and why.
type LimitChoice struct {
	Tasks  []*Task // the limit has room for them
	Passed []*Task // their partition may have no workers: they use no room, and count as unclaimed at once
	Freed  []*Task // they use no room, because a pause holds them, because the key has no limit, or as Passed

	Blocked bool // too many tasks of partitions without workers wait before the other tasks
	More    bool // the server must read the next waiting tasks at once: the limit has room for some of them
}

// manyUnclaimed is the number of unclaimed tasks from which the number of tasks in Passed grows no more. It is the number of
// tasks that the server moves in one call.
const manyUnclaimed = 500

// Choose chooses the tasks that return, from the first waiting tasks of the key in their order. At most n tasks use room.
//
// The tasks of a partition without workers must not keep the tasks behind them waiting. So as many of them may return beside
// the others as tasks are unclaimed. This doubles their number each time: even a million of them do not delay the other
// tasks for long. If the partition only has busy workers, few tasks too many return. The tasks of all other partitions
// return only if the limit has room. Otherwise, claims would make them wait again.
func (u LimitUse) Choose(waiting []*Task, n int, paused Paused) (c LimitChoice) {
	left := u.Unclaimed
	for _, t := range waiting {
		_, held := paused.Holds(&t.Properties)
		switch {
		case held || !u.Limited:
			c.Freed = append(c.Freed, t)
		case c.Blocked || len(c.Tasks) >= n: // the task keeps waiting
		case !slices.Contains(u.Unserved, t.Partition().String()):
			c.Tasks = append(c.Tasks, t)
		case left == 0:
			c.Blocked = true // claims would make the tasks behind this one wait again
		case u.Unclaimed >= manyUnclaimed:
			left--
			c.Freed = append(c.Freed, t)
		default:
			left--
			c.Passed = append(c.Passed, t)
		}
	}
	c.More = !c.Blocked && len(c.Tasks) < n && len(waiting) > 0 && len(waiting) < u.Waiting
	return c
}

// checkLimitKey checks the limit key of a task, which may have none.
func (d *Properties) checkLimitKey() error { return checkName(fieldLimitKey, d.LimitKey) }
