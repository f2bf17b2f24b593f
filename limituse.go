package tdf

import (
	"math"
	"slices"
)

// A LimitUse says how the limit of a key is used at the time Now.
type LimitUse struct {
	Key     string
	Limit   Limit
	Limited bool // whether the key has a limit

	Running int // tasks of the key with a claim
	Waiting int // tasks that wait because of the limit

	// Free is the number of rounds that may start now under the rate. NextStart is the time from which one more may
	// start.
	Free      int
	NextStart Time

	// Returned and Unclaimed count the tasks that the server has returned to their queues, but no worker has claimed
	// yet. Unclaimed counts those that were returned longer than [ReturnPatience] ago, and Returned the others.
	Returned, Unclaimed int
	Unserved            []string // the requirements of the first tasks that Unclaimed counts: they may have no workers

	Now Time
}

// ReturnPatience is the time in which workers should claim a returned task. After this time, the task does not keep
// other tasks waiting, because its queue may have no workers.
const ReturnPatience = Seconds(10)

// LimitRecheck is the longest time between two checks of a key whose tasks wait. When a task of the key leaves the
// state running, or the limit changes, the server checks the key at once. The other checks find tasks that no longer
// run but still count, and returned tasks that no worker has claimed.
const LimitRecheck = ReturnPatience

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

// Return returns how many waiting tasks may return to their queues because the limit has room, and when the server must
// check the key again. Tasks that were returned lately use the room until workers claim them.
func (u LimitUse) Return() (n int, next Time) {
	next = u.Now.Add(LimitRecheck)
	n = min(max(0, u.Room()-u.Returned), u.Waiting)
	full := u.Limit.HasNumber() && u.Running >= u.Limit.AtMost
	if starts := u.Limit.Starts; starts > 0 && !full && (n > 0 || u.Free < starts) {
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
	Passed []*Task // use no room: their requirement may have no workers. They count as unclaimed at once
	Freed  []*Task // use no room: a pause blocks them, the key has no limit, or they are like Passed, but do not count

	Blocked bool // too many tasks of requirements without workers wait before the other tasks
	More    bool // the server must read the next waiting tasks at once: the limit has room for some of them
}

// manyUnclaimed is the number of unclaimed tasks from which the number of tasks in Passed grows no more. It is the
// number of tasks that the server moves in one call.
const manyUnclaimed = 500

// Choose chooses the tasks that return, from the first waiting tasks of the key in their order. At most n tasks use
// room.
//
// The tasks of a requirement without workers must not delay the tasks behind them. So each call also returns up to
// Unclaimed of these tasks, and they use no room. This doubles the number of unclaimed tasks each time. So even a
// million of them do not delay the other tasks for long. If the workers of the requirement are only busy, a few tasks
// too many return. The tasks of all other requirements return only if the limit has room. Otherwise, claims would make
// them wait again.
func (u LimitUse) Choose(waiting []*Task, n int, paused Paused) (c LimitChoice) {
	left := u.Unclaimed
	for _, t := range waiting {
		_, held := paused.Holds(&t.Properties)
		switch {
		case held || !u.Limited:
			c.Freed = append(c.Freed, t)
		case c.Blocked || len(c.Tasks) >= n: // the task keeps waiting
		case !slices.Contains(u.Unserved, t.Requirement().String()):
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
