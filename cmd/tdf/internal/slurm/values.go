package slurm

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An array is the value of --array.
type array struct {
	indexes  []int64 // ascending, each one once
	step     int64   // of the only range that has one; 1 without
	throttle int     // how many elements may run at once; 0 for any number
}

// maxIndex is the highest index that a Slurm can be configured to have.
const maxIndex = 4_000_000

var errArray = fmt.Errorf("invalid job array specification: want indexes and ranges up to %d, such as 1-10, 0,5,7 or "+
	"0-20:4%%2", maxIndex)

func parseArray(value string) (*array, error) {
	list, throttle, limited := strings.Cut(value, "%")
	a := &array{step: 1}
	if limited {
		n, err := strconv.ParseUint(throttle, 10, 20)
		if err != nil {
			return nil, errArray
		}
		a.throttle = int(n)
	}
	for part := range strings.SplitSeq(list, ",") {
		span, step, stepped := strings.Cut(part, ":")
		first, last, isRange := strings.Cut(span, "-")
		if !isRange {
			last = first
		}
		from, err1 := strconv.ParseUint(first, 10, 32)
		to, err2 := strconv.ParseUint(last, 10, 32)
		by, err3 := uint64(1), error(nil)
		if stepped {
			by, err3 = strconv.ParseUint(step, 10, 32)
			a.step = int64(by)
		}
		if errors.Join(err1, err2, err3) != nil || to < from || to > maxIndex || by == 0 || stepped && !isRange {
			return nil, errArray
		}
		for i := from; i <= to; i += by {
			a.indexes = append(a.indexes, int64(i))
		}
		if len(a.indexes) > 2*maxIndex {
			return nil, errArray
		}
	}
	slices.Sort(a.indexes)
	a.indexes = slices.Compact(a.indexes)
	return a, nil
}

// ranges writes indexes as --array reads them.
func ranges(indexes []int64) string {
	var parts []string
	for i := 0; i < len(indexes); {
		j := i
		for j+1 < len(indexes) && indexes[j+1] == indexes[j]+1 {
			j++
		}
		part := strconv.FormatInt(indexes[i], 10)
		if j > i {
			part += "-" + strconv.FormatInt(indexes[j], 10)
		}
		parts, i = append(parts, part), j+1
	}
	return strings.Join(parts, ",")
}

var errTime = errors.New("invalid time limit: want minutes, minutes:seconds, hours:minutes:seconds, days-hours, " +
	"days-hours:minutes or days-hours:minutes:seconds")

// parseTime returns a time limit in whole minutes, as Slurm rounds it up. 0 means no limit.
func parseTime(value string) (time.Duration, error) {
	if slices.Contains([]string{"infinite", "unlimited", "-1"}, strings.ToLower(value)) {
		return 0, nil
	}
	days, rest, hasDays := strings.Cut(value, "-")
	if !hasDays {
		days, rest = "0", value
	}
	parts := strings.Split(days+":"+rest, ":")
	var n [4]int64
	units := []time.Duration{24 * time.Hour, time.Minute, time.Second}
	if len(parts) == 4 || hasDays {
		units = []time.Duration{24 * time.Hour, time.Hour, time.Minute, time.Second}
	}
	if len(parts) > len(units) {
		return 0, errTime
	}
	var sum time.Duration
	for i, part := range parts {
		v, err := strconv.ParseUint(part, 10, 20)
		if err != nil {
			return 0, errTime
		}
		n[i] = int64(v)
		sum += time.Duration(n[i]) * units[i]
	}
	return (sum + time.Minute - 1).Truncate(time.Minute), nil
}

// parseMemory returns a number of bytes. Without a unit, the number counts MiB.
func parseMemory(value string) (int64, error) {
	number, unit := strings.TrimSuffix(strings.ToUpper(value), "B"), int64(1<<20)
	if i := strings.IndexByte("KMGT", last(number)); i >= 0 {
		number, unit = number[:len(number)-1], 1<<(10*(i+1))
	}
	n, err := strconv.ParseUint(number, 10, 40)
	if err != nil || n > uint64(math.MaxInt64/unit) {
		return 0, errors.New("invalid memory size: want a number of MiB, or a number with K, M, G or T")
	}
	if n == 0 {
		return 0, errors.New("TDF cannot reserve all memory of a machine: name an amount")
	}
	return int64(n) * unit, nil
}

func last(s string) byte {
	if s == "" {
		return 0
	}
	return s[len(s)-1]
}

// cutComment returns the rest of a line #SBATCH without the comment at its end.
func cutComment(line string) string {
	var quote byte
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case c == quote:
			quote = 0
		case quote != 0:
		case c == '\\':
			i++
		case c == '\'', c == '"':
			quote = c
		case c == '#' && (i == 0 || line[i-1] == ' ' || line[i-1] == '\t'):
			return line[:i]
		}
	}
	return line
}

// noElement is the index of a job that is no element of an array, in the names of its files.
const noElement = 4294967294

// expand replaces the symbols in the pattern of a file name, such as %j or %3a. With a backslash, the pattern has no
// symbols. literal returns the text of the rest; symbol returns "" for an unknown symbol.
func expand(pattern string, literal func(string) string, symbol func(verb byte, width int) string) string {
	var out, plain strings.Builder
	if strings.Contains(pattern, `\`) {
		for i := 0; i < len(pattern); i++ {
			if pattern[i] == '\\' && i+1 < len(pattern) {
				i++
			}
			plain.WriteByte(pattern[i])
		}
		return literal(plain.String())
	}
	flush := func() {
		if plain.Len() > 0 {
			out.WriteString(literal(plain.String()))
			plain.Reset()
		}
	}
	for i := 0; i < len(pattern); i++ {
		if pattern[i] != '%' {
			plain.WriteByte(pattern[i])
			continue
		}
		end := i + 1
		for end < len(pattern) && end < i+3 && pattern[end] >= '0' && pattern[end] <= '9' {
			end++
		}
		if end == len(pattern) {
			plain.WriteByte('%')
			continue
		}
		width, _ := strconv.Atoi(pattern[i+1 : end])
		text := symbol(pattern[end], width)
		switch {
		case pattern[end] == '%':
			plain.WriteByte('%')
		case text != "":
			flush()
			out.WriteString(text)
		default:
			plain.WriteString(pattern[i : end+1])
		}
		i = end
	}
	flush()
	return out.String()
}
