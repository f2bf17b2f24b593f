package task

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/unixtime"
)

func utc(text string) Time {
	t, err := time.Parse("2006-01-02 15:04:05", text)
	if err != nil {
		panic(err)
	}
	return At(t)
}

func periodic(schedule string, change ...func(*Periodic)) Periodic {
	p := Periodic{Name: "nightly", Schedule: schedule}
	for _, c := range change {
		c(&p)
	}
	return p
}

func newPeriodic(p Periodic, now Time) (*PeriodicRecord, error) {
	return NewPeriodicRecord(p, []Properties{Defaults("p", "rsync:/p/run.sh", "")}, now)
}

// An invalid periodic is refused, with the name of what is wrong.
func TestInvalidPeriodics(t *testing.T) {
	for _, c := range []struct {
		p    Periodic
		want string
	}{
		{periodic(""), "schedule: empty spec"},
		{periodic("0 0 * *"), "schedule: expected exactly 5 fields"},
		{periodic("0 0 0 * * *"), "schedule: expected exactly 5 fields"},
		{periodic("60 * * * *"), "schedule: end of range"},
		{periodic("*/0 * * * *"), "schedule: step of range"},
		{periodic("@reboot"), "schedule: unrecognized descriptor"},
		{periodic("@every 1ns"), "schedule: \"@every 1ns\" is too often; want at least 10s"},
		{periodic("@every -1h"), "too often"},
		{periodic("@every 9999999999h"), "schedule: failed to parse duration"},
		{periodic("0 0 31 2 *"), "no time in the next five years"},
		{periodic(", * * * *"), "no time in the next five years"},
		{periodic("TZ=UTC 0 0 * * *"), "names a zone"},
		{periodic("CRON_TZ="), "names a zone"},
		{periodic(strings.Repeat("* ", 1<<19)), "schedule: has 1048576 bytes"},
		{periodic("\x00"), "control character"},
		{periodic("@daily", func(p *Periodic) { p.Zone = "Local" }), "zone: \"Local\" is another zone on each machine"},
		{periodic("@daily", func(p *Periodic) { p.Zone = "../etc/passwd" }), "zone: "},
		{periodic("@daily", func(p *Periodic) { p.Zone = "Europe/Atlantis" }), "unknown time zone Europe/Atlantis"},
		{periodic("@daily", func(p *Periodic) { p.Zone = strings.Repeat("x", 1<<20) }), "zone: has 1048576 bytes"},
		{periodic("@daily", func(p *Periodic) { p.Name = "" }), "name: is empty"},
		{periodic("@daily", func(p *Periodic) { p.Name = "a\nb" }), "control character"},
		{periodic("@daily", func(p *Periodic) { p.Name = "\xff" }), "not valid UTF-8"},
		{periodic("@daily", func(p *Periodic) { p.Name = strings.Repeat("n", 201) }), "name: has 201 bytes"},
		{periodic("@daily", func(p *Periodic) { p.Overlap = "wait" }), "want skip or open"},
		{periodic("@daily", func(p *Periodic) { p.Missed = "first" }), "want last, none or all"},
		{periodic("@daily", func(p *Periodic) { p.Missed = MissedAll }), "want overlap=open"},
	} {
		_, err := newPeriodic(c.p, utc("2030-01-01 00:00:00"))
		expect.Fails(t, err, c.want)
		expect.Equal(t, CodeOf(err), CodeInvalid, c.want)
	}
	one := Defaults("p", "", "")
	_, err := NewPeriodicRecord(periodic("@daily"), nil, 0)
	expect.Fails(t, err, "want 1 to 250")
	_, err = NewPeriodicRecord(periodic("@daily"), make([]Properties, 251), 0)
	expect.Fails(t, err, "task 1 has start_after, end_before")
	one.EndBefore = 1
	_, err = NewPeriodicRecord(periodic("@daily"), []Properties{one}, 0)
	expect.Fails(t, err, "leave them out")
	one = Defaults("p", "", strings.Repeat("x", MaxPeriodic))
	_, err = NewPeriodicRecord(periodic("@daily"), []Properties{one}, 0)
	expect.Fails(t, err, "at most 65536 are allowed")
}

// The times of a schedule, also when the clocks of its zone change: a time that does not exist is left out, and a time
// that exists twice comes twice.
func TestTimesOfSchedules(t *testing.T) {
	for _, c := range []struct{ schedule, zone, after, want string }{
		{"30 3 * * *", "", "2030-01-01 03:30:00", "2030-01-02 03:30:00 2030-01-03 03:30:00 2030-01-04 03:30:00"},
		{"@every 90m", "", "2030-01-01 00:00:01", "2030-01-01 01:30:01 2030-01-01 03:00:01 2030-01-01 04:30:01"},
		{"@hourly", "Asia/Kolkata", "2030-01-01 00:00:00", "2030-01-01 00:30:00 2030-01-01 01:30:00 2030-01-01 02:30:00"},
		{
			"30 2 * * *", "Europe/Berlin", "2030-03-30 00:00:00",
			"2030-03-30 01:30:00 2030-04-01 00:30:00 2030-04-02 00:30:00",
		},
		{
			"30 2 * * *", "Europe/Berlin", "2030-10-26 12:00:00",
			"2030-10-27 00:30:00 2030-10-27 01:30:00 2030-10-28 01:30:00",
		},
		{"0 0 29 2 *", "UTC", "2030-01-01 00:00:00", "2032-02-29 00:00:00 2036-02-29 00:00:00 2040-02-29 00:00:00"},
		{
			"0 0 1 * *", "Pacific/Apia", "2011-12-01 00:00:00",
			"2026-01-31 11:00:00 2026-02-28 11:00:00 2026-03-31 11:00:00",
		},
	} {
		s := expect.Result(parseSchedule(c.schedule, c.zone)).Value(t)
		var got []string
		at := utc(c.after)
		for range 3 {
			at = s.next(at)
			got = append(got, at.Std().UTC().Format("2006-01-02 15:04:05"))
		}
		expect.Equal(t, strings.Join(got, " "), c.want, c.schedule, c.zone)
	}
}

// Sunday is the first and the last day of the week, as a number and by name.
func TestSundays(t *testing.T) {
	for days, want := range map[string]string{
		"7": "0", "MON-SUN": "*", "0-7": "*", "5-7": "0,5,6", "fri-Sun/2": "0,5", "2,7": "0,2", "1-7/3": "1,4,0", "SUN-SUN": "0", "sun": "0", "MON-FRI": "1-5", "6-SUN": "0,6",
	} {
		got := expect.Result(parseSchedule("30 3 * * "+days, "")).Value(t)
		as := expect.Result(parseSchedule("30 3 * * "+want, "")).Value(t)
		for at := utc("2030-01-01 00:00:00"); at < utc("2030-01-15 00:00:00"); at = as.next(at) {
			expect.Equal(t, got.next(at), as.next(at), days)
		}
	}
	for _, days := range []string{"8", "7-2", "1-0", "MON-", "-7", "7/2", "-", "1-7/0", "1-7/-1", "77", "SUNDAY", "1-8"} {
		_, err := parseSchedule("30 3 * * "+days, "")
		expect.Fails(t, err, "want five fields")
	}
}

var timeIn = regexp.MustCompile(` (\d\d:\d\d):\d\d UTC`) // in a reason

// Whatever the schedule is, its times ascend.
func FuzzSchedule(f *testing.F) {
	f.Add("30 3 * * *", "Europe/Berlin", 1.9e9)
	f.Add("*/7,59 0-23/5 L 2 MON-FRI", "Pacific/Apia", 0.5)
	f.Add("@every 90m1s", "", 1e11)
	f.Fuzz(func(t *testing.T, text, zone string, at float64) {
		s, err := parseSchedule(text, zone)
		if err != nil || !unixtime.Valid(at) || at > 1e10 {
			return
		}
		for last, n := Time(at), 0; n < 3; n++ {
			next := s.next(last)
			if next == 0 {
				return
			}
			expect.Compare(t, next, ">", last, text, zone)
			last = next
		}
	})
}

// Step decides which time a server handles, and which one comes next.
func TestPeriodicStep(t *testing.T) {
	none := func(p *Periodic) { p.Missed = MissedNone }
	all := func(p *Periodic) { p.Missed, p.Overlap = MissedAll, OverlapOpen }
	begin := utc("2030-01-01 00:00:00")
	for _, c := range []struct {
		p         Periodic
		now, want string // of all steps until nothing is due
	}{
		{periodic("0 * * * *"), "2030-01-01 00:59:59", ""},
		{periodic("0 * * * *"), "2030-01-01 01:00:00", "01:00 opened, next 02:00;"},
		{periodic("0 * * * *"), "2030-01-01 03:10:00", "03:00 opened (missed from 01:00), next 04:00;"},
		{periodic("0 * * * *", none), "2030-01-01 01:01:00", "01:00 opened, next 02:00;"},
		{periodic("0 * * * *", none), "2030-01-01 01:01:01", "01:00 missed (by 01:01), next 02:00;"},
		{periodic("0 * * * *", none), "2030-01-01 03:00:30", "03:00 opened (missed from 01:00), next 04:00;"},
		{
			periodic("0 * * * *", all), "2030-01-01 03:10:00",
			"01:00 opened, next 02:00;02:00 opened, next 03:00;03:00 opened, next 04:00;",
		},
		{periodic("@every 90m", all), "2030-01-01 03:10:00", "01:30 opened, next 03:00;03:00 opened, next 04:30;"},
		{periodic("@every 90m"), "2090-01-01 00:10:00", "00:00 opened (missed from 01:30), next 01:30;"},
		{periodic("* * * * *"), "2090-01-01 00:10:20", "00:10 opened (missed from 00:01), next 00:11;"},
	} {
		r := expect.Result(newPeriodic(c.p, begin)).Value(t)
		got := ""
		for {
			step, due, err := r.Step(utc(c.now))
			expect.NoError(t, err)
			if !due {
				break
			}
			what := "missed"
			if step.Open {
				what = "opened"
			}
			if at := timeIn.FindStringSubmatch(step.Why); step.Open && at != nil {
				what += " (missed from " + at[1] + ")"
			} else if at != nil {
				what += " (by " + at[1] + ")"
			}
			clock := func(t Time) string { return t.Std().UTC().Format("15:04") }
			got += fmt.Sprintf("%s %s, next %s;", clock(step.Time), what, clock(step.Next))
			r = r.Opening("", step.Time, step.Next, nil)
		}
		expect.Equal(t, got, c.want, c.p.Schedule, c.p.Missed, c.now)
	}
	for _, schedule := range []string{"* * * * *", "@every 10s", "0 0 1 * *"} { // only the newest 100
		r := expect.Result(newPeriodic(periodic(schedule, all), begin)).Value(t)
		times, next := expect.Result(parseSchedule(schedule, "")).Value(t).newest(r.Next, utc("2060-06-01 00:00:05"))
		expect.Len(t, times, 100, schedule)
		expect.Compare(t, next, ">", utc("2060-06-01 00:00:05"), schedule)
	}
}

// A record keeps everything when it is written and read, and an invalid one is refused.
func TestPeriodicRecords(t *testing.T) {
	odd := Defaults("p", "", "\xff")
	odd.Tags, odd.MaxLosses, odd.Group, odd.KeepArchived = []string{"b", "a"}, 0, "g", 5
	odd.After = &Dependencies{Places: []int{1}}
	tasks := []Properties{odd, Defaults("q", "rsync:/q/run.sh", "1")}
	r := expect.Result(NewPeriodicRecord(periodic("@daily"), tasks, utc("2030-01-01 00:00:00"))).Value(t)
	paused := r.Opening("because", r.Next, r.Next+86400, []int64{7, 9})
	paused.PausedBy, paused.PausedAt = "ann", 5.25
	got := expect.Result(ParsePeriodic("nightly", paused.String())).Value(t)
	expect.Equal(t, got.String(), paused.String())
	expect.Equal(t, fmt.Sprint(got.Properties()[1]), fmt.Sprint(tasks[1]))
	expect.Equal(t, got.Properties()[0].Input, "\xff")
	expect.Equal(t, got.Properties()[0].MaxLosses, 0)
	expect.Equal(t, got.IDs, []int64{7, 9})
	_, due, err := got.Step(r.Next + 1e6)
	expect.NoError(t, err)
	expect.Equal(t, due, false, "a paused periodic is due")
	expect.Equal(t, got.Replaced(r).String(), paused.String(), "the same definition")
	resumed := expect.Result(got.Resumed(utc("2030-05-05 05:05:05"))).Value(t)
	expect.Equal(t, resumed.Next, utc("2030-05-06 00:00:00"))
	for _, text := range []string{
		"", "null", "[]", `{"ids":"x"}`, strings.Replace(r.String(), "@daily", "@never", 1),
		strings.Replace(r.String(), `"next":`, `"next":1e300,"x":`, 1),
		strings.Replace(r.String(), `"next":`, `"next":-1,"x":`, 1),
		strings.Repeat(" ", 1<<20), strings.Replace(r.String(), `"tasks":[`, `"tasks":[],"x":[`, 1),
	} {
		_, err := ParsePeriodic("nightly", text)
		expect.Fails(t, err, `periodic "nightly"`, text[:min(len(text), 100)])
	}
	long := r.After(PeriodicRun{Why: strings.Repeat("ü", 1000)}, r.Next)
	expect.Len(t, long.Last.Why, 500)
	many := r.Opening("", r.Next, r.Next, make([]int64, 2000))
	expect.Len(t, many.IDs, 1000)
	for i := range many.IDs {
		many.IDs[i] = math.MaxInt64
	}
	expect.Compare(t, len(many.String()), "<", maxPeriodicState)
}
