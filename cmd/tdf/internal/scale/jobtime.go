package scale

import (
	"strconv"
	"strings"
	"time"
)

// jobTime returns the time limit in options of sbatch. It returns 0 if they have none: then the limit is that of the
// partition, which tdf does not know.
func jobTime(options []string) (limit time.Duration) {
	for i, option := range options {
		text, is := strings.CutPrefix(option, "--time=")
		switch {
		case is:
		case (option == "--time" || option == "-t") && i+1 < len(options):
			text = options[i+1]
		case strings.HasPrefix(option, "-t") && len(option) > 2:
			text = option[2:]
		default:
			continue
		}
		limit = slurmTime(text) // as in sbatch, the last one holds
	}
	return limit
}

// slurmTime reads a time of Slurm: minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes or
// days-hours:minutes:seconds. It returns 0 for any other text, such as UNLIMITED.
func slurmTime(text string) time.Duration {
	days, clock, hasDays := strings.Cut(text, "-")
	if !hasDays {
		days, clock = "0", text
	}
	parts := strings.Split(clock, ":")
	units := map[int][]time.Duration{
		1: {time.Minute}, 2: {time.Minute, time.Second}, 3: {time.Hour, time.Minute, time.Second},
	}[len(parts)]
	if hasDays && len(parts) <= 3 {
		units = []time.Duration{time.Hour, time.Minute, time.Second}[:len(parts)]
	}
	if units == nil {
		return 0
	}
	sum := time.Duration(0)
	for i, n := range append([]string{days}, parts...) {
		number, err := strconv.ParseUint(n, 10, 16)
		if err != nil {
			return 0
		}
		unit := 24 * time.Hour
		if i > 0 {
			unit = units[i-1]
		}
		sum += time.Duration(number) * unit
	}
	return sum
}
