package task

import (
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// MinPeriod is the shortest time between two times of a schedule. A server looks for due times once in a round.
const MinPeriod = 10 * time.Second

// A schedule has the times of a [Periodic].
type schedule struct {
	times cron.Schedule
	zone  *time.Location
}

// parseSchedule returns a *[PropertyError] for an invalid schedule or zone.
func parseSchedule(text, zone string) (s schedule, err error) {
	if err := checkName("schedule", text); err != nil {
		return s, err
	}
	if err := checkName("zone", zone); err != nil {
		return s, err
	}
	if strings.Contains(text, "TZ=") {
		return s, invalidProperty("schedule", "%q names a zone; the zone has a property of its own", text)
	}
	if strings.EqualFold(zone, "local") {
		return s, invalidProperty("zone", "%q is another zone on each machine; want a name such as Europe/Berlin", zone)
	}
	if s.zone, err = time.LoadLocation(zone); err != nil {
		return s, invalidProperty("zone", "%v; want a name such as Europe/Berlin, or none for UTC", err)
	}
	if s.times, err = cron.ParseStandard(withSundays(text)); err != nil {
		return s, invalidProperty("schedule", `%v; want five fields such as "30 3 * * *", @hourly, @daily, @weekly, `+
			"@monthly, @yearly or @every 90m", err)
	}
	if every, is := s.times.(cron.ConstantDelaySchedule); is && every.Delay < MinPeriod {
		return s, invalidProperty("schedule", "%q is too often; want at least %v", text, MinPeriod)
	}
	return s, nil
}

var weekdays = map[string]int{"sun": 0, "mon": 1, "tue": 2, "wed": 3, "thu": 4, "fri": 5, "sat": 6}

// withSundays replaces ranges of the day of the week that end on a Sunday, and the Sunday 7, by lists of days: the
// parser knows Sunday only as the first day, 0.
func withSundays(text string) string {
	fields := strings.Fields(text)
	if len(fields) != 5 {
		return text
	}
	var parts []string
	for part := range strings.SplitSeq(fields[4], ",") {
		parts = append(parts, daysOf(part))
	}
	fields[4] = strings.Join(parts, ",")
	return strings.Join(fields, " ")
}

// daysOf returns a part of the list of days, which it changes only if it has a Sunday at its end.
func daysOf(part string) string {
	days, every, stepped := strings.Cut(part, "/")
	low, high, ranged := strings.Cut(days, "-")
	first, last, step := weekday(low), weekday(high), 1
	if !ranged {
		last = first
	}
	if strings.EqualFold(high, "sun") && first > 0 {
		last = 7
	}
	if stepped {
		step, _ = strconv.Atoi(every)
	}
	if first < 0 || last != 7 || step < 1 || stepped && !ranged {
		return part
	}
	var all []string
	for day := first; day <= last; day += step {
		all = append(all, strconv.Itoa(day%7))
	}
	return strings.Join(all, ",")
}

// weekday returns the number of a day, from 0 to 7, or -1.
func weekday(text string) int {
	if day, named := weekdays[strings.ToLower(text)]; named {
		return day
	}
	if len(text) == 1 && text[0] >= '0' && text[0] <= '7' {
		return int(text[0] - '0')
	}
	return -1
}

// earliest is a time before the first release. Before it, some zones skip a day, and there cron.Schedule.Next never
// ends.
var earliest = At(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))

// next returns the first time after t, or 0 if there is none in the next five years.
func (s schedule) next(t Time) Time { return At(s.times.Next(max(t, earliest).Std().In(s.zone))) }

// mostMissed is the largest number of missed times that a server opens.
const mostMissed = 100

// newest returns the newest times from first to now, at most mostMissed of them, and the first time after now. The time
// first is one of the schedule.
func (s schedule) newest(first, now Time) (times []Time, next Time) {
	if every, is := s.times.(cron.ConstantDelaySchedule); is { // its times depend on the first one
		delay := Time(every.Delay.Seconds())
		if late := int64((now-first)/delay) - mostMissed + 1; late > 0 {
			first += Time(late) * delay
		}
	} else {
		for span := Time(3600); now-span > first; span *= 2 {
			if all := s.from(s.next(now-span), now); len(all) >= mostMissed {
				first = all[len(all)-mostMissed]
				break
			}
		}
	}
	times = s.from(first, now)
	return times[max(0, len(times)-mostMissed):], s.next(times[len(times)-1])
}

// from returns the times from first to now.
func (s schedule) from(first, now Time) (times []Time) {
	for t := first; t > 0 && t <= now; t = s.next(t) {
		times = append(times, t)
	}
	return times
}
