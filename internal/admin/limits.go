package admin

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/limits"
)

// limitCheck returns a check of the limit of the task's key. A task without a key, or whose key has no limit, has no
// such check (docs/lifecycle.md, "Limits per key").
func (c *situation) limitCheck() []Check {
	key, waits := c.task.LimitKey, c.task.WaitsForLimit()
	held := func(code FactCode, format string, fix Fix, args ...any) []Check {
		return []Check{blocked("limit", Fact{code, key, fmt.Sprintf(format, args...), fix})}
	}
	zero, isZero := zeroLimit(c.limit)
	switch {
	case isZero:
		return []Check{blocked("limit", zero)}
	case waits && !c.limit.Limited:
		when := "the server returns"
		if c.namespacePaused() {
			when = "after the pause of the namespace, the server will return"
		}
		return held(FactLimitRemoved, "the limit of key %q was removed, and %s the waiting tasks", toWait, key, when)
	case !c.limit.Limited:
		return nil
	case waits:
		return held(FactLimitFull, "the task waits for the limit of key %q: %s", toWait.or(toRaiseLimit), key,
			useText(c.limit))
	case c.limit.Room() == 0:
		return held(FactLimitFull, "the limit of key %q has no room: %s", toWait.or(toRaiseLimit), key,
			useText(c.limit))
	}
	return []Check{passed("limit", fmt.Sprintf("the limit of key %q has room: %s", key, useText(c.limit)))}
}

func (c *situation) namespacePaused() bool {
	return slices.ContainsFunc(c.paused, func(p limits.Pausing) bool { return p.Namespace })
}

// useText describes how a limit is used, such as "4 of 4 tasks run, 7 tasks wait".
func useText(u task.LimitUse) string {
	var parts []string
	if u.Limit.HasNumber() {
		parts = append(parts, fmt.Sprintf("%d of %d tasks run", u.Running, u.Limit.AtMost))
	}
	if u.Limit.Starts > 0 {
		per := strconv.FormatFloat(u.Limit.Per.Seconds(), 'f', -1, 64)
		parts = append(parts, fmt.Sprintf("%d of %d starts in the last %s s", u.Limit.Starts-u.Free, u.Limit.Starts,
			per))
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
	return slices.ContainsFunc(v.limits, func(u task.LimitUse) bool { return u.Waiting > 0 })
}

// limitsInUse reports limits of 0 for which tasks wait.
func (v *vitals) limitsInUse(d *diagnoses) {
	waiting := slices.DeleteFunc(slices.Clone(v.limits), func(u task.LimitUse) bool { return u.Waiting == 0 })
	zero := zeroLimits(waiting)
	for _, fact := range zero[:min(len(zero), mostNamed)] {
		d.notice("limit", fact)
	}
	if more := len(zero) - mostNamed; more > 0 {
		text := fmt.Sprintf("the tasks of %d more keys wait, and none of them may run", more)
		d.notice("limit", Fact{Code: FactLimitZero, Text: text, Fix: fix("list the limits", StepListLimits)})
	}
}
