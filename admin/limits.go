package admin

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

// limits returns a check of the limit of the task's key. A task without a key, or whose key has no limit, has no such check
// (docs/lifecycle.md, "Limits per key").
func (c *situation) limits() []Check {
	waits := c.task.WaitsForLimit()
	switch {
	case waits && !c.limit.Limited:
		when := "the server returns"
		if c.namespacePaused() {
			when = "after the pause of the namespace, the server will return"
		}
		return []Check{{"limit", Blocked, fmt.Sprintf("the limit of key %q was removed, and %s the waiting tasks", c.task.LimitKey, when), "wait"}}
	case !c.limit.Limited:
		return nil
	case waits:
		return []Check{{"limit", Blocked, fmt.Sprintf("the task waits for the limit of key %q: %s", c.task.LimitKey, useText(c.limit)), "wait, or raise the limit"}}
	case c.limit.Room() == 0:
		return []Check{{"limit", Blocked, fmt.Sprintf("the limit of key %q has no room: %s", c.task.LimitKey, useText(c.limit)), "wait, or raise the limit"}}
	}
	return []Check{{"limit", Passed, fmt.Sprintf("the limit of key %q has room: %s", c.task.LimitKey, useText(c.limit)), ""}}
}

func (c *situation) namespacePaused() bool {
	return slices.ContainsFunc(c.paused, func(p redisstate.Pausing) bool { return p.Pausable == tdf.Pausable{} })
}

// useText describes how a limit is used, such as "4 of 4 tasks run, 7 tasks wait".
func useText(u tdf.LimitUse) string {
	var parts []string
	if u.Limit.AtMost != tdf.AnyNumber {
		parts = append(parts, fmt.Sprintf("%d of %d tasks run", u.Running, u.Limit.AtMost))
	}
	if u.Limit.Starts > 0 {
		per := strconv.FormatFloat(float64(u.Limit.Per), 'f', -1, 64)
		parts = append(parts, fmt.Sprintf("%d of %d starts in the last %s s", u.Limit.Starts-u.Free, u.Limit.Starts, per))
	}
	if u.Waiting > 0 {
		parts = append(parts, tasksText(u.Waiting))
	}
	return strings.Join(parts, ", ")
}

func tasksText(waiting int) string {
	if waiting == 1 {
		return "1 task waits"
	}
	return fmt.Sprintf("%d tasks wait", waiting)
}

// waitForLimits reports whether tasks wait because of the limits of their keys.
func (v *vitals) waitForLimits() bool {
	return slices.ContainsFunc(v.limits, func(u tdf.LimitUse) bool { return u.Waiting > 0 })
}

// mostLimitsNamed is the largest number of limits that doctor names.
const mostLimitsNamed = 5

// limitsInUse reports keys whose tasks wait although none of them runs. While something is paused, it reports only limits of 0.
func (v *vitals) limitsInUse(d *diagnoses) {
	named := 0
	for _, u := range v.limits {
		zero, stuck := u.Limit.AtMost == 0, u.Running == 0 && u.Room() > 0 && u.Unclaimed > 0 && len(v.paused) == 0
		if u.Waiting == 0 || !zero && !stuck {
			continue
		}
		if named++; named > mostLimitsNamed {
			continue
		}
		if zero {
			d.notice("limit", fmt.Sprintf("the limit of key %q is 0: %s", u.Key, tasksText(u.Waiting)), "raise the limit")
			continue
		}
		text := fmt.Sprintf("no worker claims tasks of key %q, although its limit has room: %s", u.Key, tasksText(u.Waiting))
		d.problem("limit", text, "explain one of the open tasks")
	}
	if named > mostLimitsNamed {
		d.notice("limit", fmt.Sprintf("the tasks of %d more keys wait, and none of them runs", named-mostLimitsNamed), "list the limits")
	}
}
