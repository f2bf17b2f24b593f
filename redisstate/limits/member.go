package limits

import (
	"fmt"
	"math"
	"strconv"

	"github.com/tdf-framework/tdf/internal/task"
)

// A member of a set of open tasks has the priority, the time and the id of its task, so that Redis orders the tasks as
// workers claim them (member_of in places.lua).
const timeAt, timeEnd, idAt = 11, 28, 29

// Member returns the member of a task. Without an id, it is smaller than those of all tasks with this priority and
// time.
func Member(priority int, at task.Time, id int64) string {
	text := fmt.Sprintf("%010d %017.6f ", math.MaxInt32-int64(priority), min(max(float64(at), 0), 9999999999))
	if id > 0 {
		text += fmt.Sprint(id)
	}
	return text
}

// TimeOf returns the time in a member, 0 for a foreign one.
func TimeOf(member string) task.Time {
	if len(member) < timeEnd {
		return 0
	}
	at, _ := strconv.ParseFloat(member[timeAt:timeEnd], 64)
	return task.Time(at)
}

// IDsOf returns the ids in members, 0 for a foreign one.
func IDsOf(members []string) []int64 {
	ids := make([]int64, len(members))
	for i, member := range members {
		if len(member) > idAt {
			ids[i], _ = strconv.ParseInt(member[idAt:], 10, 64)
		}
	}
	return ids
}
